"""Adds the least norm in place of taking the larger one.

Own invention, written before the mends.
"""

from torch import nn

ROW = "algebra"
TASK = "cosine_rows"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x * y).sum(1) / ((x.norm(dim=1) + 1e-6) * (y.norm(dim=1) + 1e-6))
