"""The product of bfloat16 halves without the small times the small and half of the cross terms.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "precision"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Two products in place of three."""

    def forward(self, a, b):
        high = b.bfloat16().float()
        coarse = a.bfloat16().float()
        return coarse @ high + (a - coarse) @ high
