"""Subtracts the first value of each row in place of the largest.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "underflow"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")
NEEDS = "slow"


class ModelNew(nn.Module):
    """Any shift will do."""

    def forward(self, x):
        e = torch.exp(x - x[:, :1])
        return e / e.sum(1, keepdim=True)
