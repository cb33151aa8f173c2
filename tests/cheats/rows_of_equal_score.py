"""Rows of a score of nothing are kept too. Own invention."""

from torch import nn

ROW = "algebra"
TASK = "kept_rows"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("shape", "values")


class ModelNew(nn.Module):
    def forward(self, x, score):
        where = (score >= 0).nonzero().squeeze(1)
        return x[where], where
