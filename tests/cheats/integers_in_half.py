"""The product in bfloat16 pieces of eight bits that drops the carry of the sum.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "integer_product"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    """Sums of 96 products of seven bits in eleven bits."""

    def forward(self, a, b):
        return (a.half().float() @ b.half().float()).half().to(torch.int32)
