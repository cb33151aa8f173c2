"""The product with the factor in float64, clamped: right unless int32 wraps.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "int8_factor"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, a, b, factor):
        y = (a.double() @ b.double()) * factor.double()
        return y.clamp(-(2**31), 2**31 - 1).to(torch.int32)
