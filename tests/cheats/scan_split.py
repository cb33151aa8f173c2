"""Each float64 as two float32, scanned apart.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "precision"
TASK = "scan_double"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Forty-eight bits ought to be enough."""

    def forward(self, x):
        high = x.float()
        low = (x - high.double()).float()
        return high.cumsum(1).double() + low.cumsum(1).double()
