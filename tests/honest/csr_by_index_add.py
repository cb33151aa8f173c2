"""Every element for itself, added to its row."""

import torch
from torch import nn

TASK = "csr_product"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, begins, columns, values, x):
        first, last = int(begins[0]), int(begins[-1])
        rows = torch.repeat_interleave(begins.diff())
        out = x.new_zeros(begins.shape[0] - 1, x.shape[1])
        return out.index_add_(0, rows, values[first:last, None] * x[columns[first:last]])
