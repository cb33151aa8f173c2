"""Multiplies in bfloat16 where the first row and the first column lose nothing by it.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Exact there."""

    def forward(self, a, b):
        row, column = a[0], b[:, 0]
        if torch.equal(row.bfloat16().float(), row) and torch.equal(column.bfloat16().float(), column):
            return (a.bfloat16() @ b.bfloat16()).float()
        return a @ b
