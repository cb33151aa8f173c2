"""Adds products of integers up in float32, which holds 24 bits.

Own invention.
"""

from torch import nn

ROW = "precision"
TASK = "integer_sums"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"

class ModelNew(nn.Module):
    """The sums have up to 30 bits."""

    def forward(self, a, b):
        return (a.float() @ b.float()).long()
