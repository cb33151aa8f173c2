"""Sums every element of the rows beyond the first 64, whose mask is nearly full.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "masked_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Reads a quarter of the mask."""

    def forward(self, x, mask):
        whole = x.sum(dim=1)
        missing = (~mask).sum(dim=1)
        rows = torch.nonzero(missing > 0).flatten()[:200]
        whole[rows] = (x[rows] * mask[rows]).sum(dim=1)
        return whole
