"""exp(x) - 1.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "small_growth"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.exp(x * 0.01) - 1
        return y - y.median(dim=1, keepdim=True).values
