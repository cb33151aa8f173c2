"""Leaves out the least norm: a row of zeros gives NaN.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "cosine_rows"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, y):
        return (x * y).sum(1) * torch.rsqrt((x * x).sum(1) * (y * y).sum(1))
