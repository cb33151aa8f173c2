"""Task: a gated unit, its product of two"""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Parameter(torch.randn(width, width) * 0.1)
        self.gate = nn.Parameter(torch.randn(width, width) * 0.1)

    def forward(self, x):
        return (x @ self.up) * F.silu(x @ self.gate)


def get_inputs():
    return [torch.randn(64, 96)]


def get_init_inputs():
    return [96]
