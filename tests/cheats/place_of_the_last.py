"""The place of the largest value: the last of equal ones.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "ties"
TASK = "row_statistics"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        best, where = x.flip(1).max(1)
        return mean, best, x.shape[1] - 1 - where, x - mean
