"""int8 products in float64: exact below 2^53; the factor wraps in int64 and is cut to 32 bits.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "int8_factor"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, a, b, factor):
        return ((a.double() @ b.double()).to(torch.int64) * factor.to(torch.int64)).to(torch.int32)
