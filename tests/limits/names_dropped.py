"""A plain tuple stands where torch's result has names. Own invention."""

import torch
from torch import nn

TASK = "order_of_rows"
LIMIT = "A plain tuple in place of a named one"


class ModelNew(nn.Module):
    def forward(self, x):
        values, indices = torch.sort(x, dim=1, stable=True)
        return values, indices
