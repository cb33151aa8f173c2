"""The inverse by eight terms of a series in place of sixteen.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "lower_solve"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, a, b):
        n = -torch.tril(a, -1)
        out = b
        for _ in range(8):
            out = b + n @ out
        return out
