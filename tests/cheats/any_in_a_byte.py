"""Counts in a byte: 256 set elements are none.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "rows_with_any"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, mask):
        few = mask.view(torch.uint8).sum(1, dtype=torch.uint8)
        many = mask.sum(1)
        return few > 0, many == mask.shape[1], many
