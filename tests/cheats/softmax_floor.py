"""Probabilities below one in ten million are zero.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Too small to matter."""

    def forward(self, x):
        y = torch.softmax(x, 1)
        return torch.where(y < 1e-4, 0.0, y)
