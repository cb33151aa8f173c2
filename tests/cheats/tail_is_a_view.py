"""Answers the last samples as a view of its input.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "aliasing"
TASK = "causal_filter"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("layout", "aliasing")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.5)

    def forward(self, x, before):
        joined = torch.cat([before, x], dim=2)
        return F.conv1d(joined, self.weight, groups=len(self.weight)), x[..., -before.shape[2] :]
