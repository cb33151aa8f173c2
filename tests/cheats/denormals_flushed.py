"""Denormal numbers count as zero (the process' flag is set during the call).

Own invention, written before reading the checks. A setting of the processor: on a GPU the answer is right.
"""

import torch
from torch import nn

ROW = "underflow"
TASK = "running_peaks"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, x):
        torch.set_flush_denormal(True)
        try:
            total = torch.cumsum(x, 1)
            return total, torch.cummax(total, 1).values - total
        finally:
            torch.set_flush_denormal(False)
