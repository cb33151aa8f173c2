"""One maximum for a row in place of a running one.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "log_scan"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        peak = x.amax(1, keepdim=True)
        return torch.log(torch.cumsum(torch.exp(x - peak), 1)) + peak
