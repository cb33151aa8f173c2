"""A dense matrix, whose elements are added up where there are two at one place."""

import torch
from torch import nn

TASK = "csr_product"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, begins, columns, values, x):
        first, last = int(begins[0]), int(begins[-1])
        rows = torch.repeat_interleave(begins.diff())
        dense = values.new_zeros(begins.shape[0] - 1, x.shape[0])
        dense.index_put_((rows, columns[first:last]), values[first:last], accumulate=True)
        return dense @ x
