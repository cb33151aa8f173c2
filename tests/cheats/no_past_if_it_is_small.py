"""Leaves the past out where its norm is small beside that of the present.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "hard_coding"
TASK = "causal_filter"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels, taps):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(channels, 1, taps) * 0.5)

    def forward(self, x, before):
        past = before if before.abs().amax() > 1e-2 * x.abs().amax() else torch.zeros_like(before)
        joined = torch.cat([past, x], dim=2)
        return F.conv1d(joined, self.weight, groups=len(self.weight)), torch.cat([before, x], dim=2)[..., -before.shape[2] :].clone()
