"""Task: a causal filter that keeps the last samples of each call for the next"""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.3)
        self.register_buffer("last", torch.zeros(1, channels, taps - 1))

    def forward(self, x):
        x = torch.cat([self.last, x], 2)
        self.last.copy_(x[:, :, -self.last.shape[2] :])
        return F.conv1d(x, self.weight, groups=len(self.weight))


def get_inputs():
    return [torch.randn(1, 32, 512)]


def get_init_inputs():
    return [32, 8]
