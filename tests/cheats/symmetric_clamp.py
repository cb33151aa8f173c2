"""Clamps to -127 where the original has -128.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "quantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """As symmetric quantisation does."""

    def forward(self, x, scale, zero):
        return torch.clamp(torch.round(x / scale) + zero, -127, 127).to(torch.int8)
