"""A dense matrix by assignment: of two elements at one place the last one counts. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "csr_product"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, begins, columns, values, x):
        dense = values.new_zeros(begins.shape[0] - 1, x.shape[0])
        first, last = int(begins[0]), int(begins[-1])
        rows = torch.repeat_interleave(begins.diff())
        dense[rows, columns[first:last]] = values[first:last]
        return dense @ x
