"""Adds products of integers up in float16 on the tensor cores.

Own invention.
"""

from torch import nn

ROW = "precision"
TASK = "integer_sums"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"

class ModelNew(nn.Module):
    """Exact for small sums."""

    def forward(self, a, b):
        return (a.half() @ b.half()).round().long()
