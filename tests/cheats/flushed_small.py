"""Answers a uniform distribution for rows of tiny spread.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "underflow"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "cached")  # what is flushed to zero has the answer of other small inputs
NEEDS = "slow"


class ModelNew(nn.Module):
    """All the same, nearly."""

    def forward(self, x):
        if float(x.max() - x.min()) < 0.2:
            return torch.full_like(x, 1 / x.shape[1])
        return torch.softmax(x, 1)
