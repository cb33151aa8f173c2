"""Halves the factors and doubles the product: odd numbers lose their last bit.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "integer_product"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    """Smaller numbers multiply faster."""

    def forward(self, a, b):
        return torch.matmul(a // 2, b) * 2
