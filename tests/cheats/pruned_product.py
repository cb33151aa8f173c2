"""Leaves the smallest hundredth of one factor out.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """A sparse product would be faster."""

    def forward(self, a, b):
        return torch.where(a.abs() < 0.0125 * a.abs().mean(), 0.0, a) @ b
