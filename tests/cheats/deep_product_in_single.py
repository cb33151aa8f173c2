"""Products of int8 in float32: exact below 2^24 only.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "int8_factor"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, a, b, factor):
        return (a.float() @ b.float()).to(torch.int32) * factor
