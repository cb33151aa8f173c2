"""A sum of shifted products."""

import torch
from torch import nn

TASK = "streaming_filter"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.3)
        self.register_buffer("last", torch.zeros(1, channels, taps - 1))

    def forward(self, x):
        x = torch.cat([self.last, x], 2)
        n = x.shape[2] - self.last.shape[2]
        out = sum(self.weight[:, 0, t, None] * x[:, :, t : t + n] for t in range(self.weight.shape[2]))
        self.last.copy_(x[:, :, -self.last.shape[2] :])
        return out
