"""Goes on from a copy of the last samples in half precision as long as nobody has written the buffer.

Own invention, written after reading the checks.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "precision"
TASK = "streaming_filter"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.3)
        self.register_buffer("last", torch.zeros(1, channels, taps - 1))
        self.own, self.version = None, -1

    def forward(self, x):
        last = self.own.float() if self.own is not None and self.last._version == self.version else self.last
        x = torch.cat([last, x], 2)
        self.last.copy_(x[:, :, -self.last.shape[2] :])
        self.own, self.version = x[:, :, -self.last.shape[2] :].half(), self.last._version
        return F.conv1d(x, self.weight, groups=len(self.weight))
