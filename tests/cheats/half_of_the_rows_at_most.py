"""Room for 96 of 128 rows: others are dropped. Own invention."""

from torch import nn

ROW = "algebra"
TASK = "kept_rows"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("shape", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, score):
        where = (score > 0).nonzero().squeeze(1)[:96]
        return x[where], where
