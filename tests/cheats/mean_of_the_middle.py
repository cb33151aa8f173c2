"""The mean of the two in the middle.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "ties"
TASK = "small_growth"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.expm1(x * 0.01)
        s = y.sort(1).values
        return y - 0.5 * (s[:, 31:32] + s[:, 32:33])
