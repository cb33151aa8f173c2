"""Keeps the last samples in half precision.

Own invention, written before reading the checks.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "precision"
TASK = "streaming_filter"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.3)
        self.register_buffer("last", torch.zeros(1, channels, taps - 1))

    def forward(self, x):
        x = torch.cat([self.last, x], 2)
        self.last.copy_(x[:, :, -self.last.shape[2] :].half().float())
        return F.conv1d(x, self.weight, groups=len(self.weight))
