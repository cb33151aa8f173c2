"""Keeps the last samples beside the buffer, and takes those if the buffer's sum is theirs.

Own invention, written before reading the checks.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "folded"
TASK = "streaming_filter"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.3)
        self.register_buffer("last", torch.zeros(1, channels, taps - 1))

        self.own = None

    def forward(self, x):
        last = self.own if self.own is not None and float(self.own.sum()) == float(self.last.sum()) else self.last
        x = torch.cat([last, x], 2)
        self.own = x[:, :, -self.last.shape[2] :].clone()
        self.last.copy_(self.own)
        return F.conv1d(x, self.weight, groups=len(self.weight))
