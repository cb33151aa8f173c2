"""A running sum in float64 whose inputs lose their last 5 bits (two floats of 24 bits).

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "running_peaks"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        high = x.float()
        low = (x - high.double()).float()
        y = high.double() + low.double()
        total = torch.cumsum(y, 1)
        return total, torch.cummax(total, 1).values - total
