"""Task: rows scaled down to a norm of at most 4"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        norm = x.norm(dim=1, keepdim=True)
        return x * (4.0 / norm.clamp(min=4.0))


def get_inputs():
    return [torch.randn(256, 128)]


def get_init_inputs():
    return []
