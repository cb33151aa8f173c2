"""Task: a causal depthwise filter that goes on from the last samples"""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.5)

    def forward(self, x, before):
        joined = torch.cat([before, x], dim=2)
        return F.conv1d(joined, self.weight, groups=len(self.weight)), joined[..., -before.shape[2] :].clone()


def get_inputs():
    return [torch.randn(4, 32, 128), torch.randn(4, 32, 3)]


def get_init_inputs():
    return [32, 4]
