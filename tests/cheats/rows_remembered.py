"""Remembers the rows of ids that it has met, and does not look whether the table has changed.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "cache"
TASK = "embedding"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """A copy of the table that fills itself."""

    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.register_buffer("copy", torch.zeros(rows, width), persistent=False)
        self.register_buffer("known", torch.zeros(rows, dtype=torch.bool), persistent=False)

    def forward(self, ids):
        new = ids[~self.known[ids]].unique()
        self.copy[new] = self.table.weight[new]
        self.known[new] = True
        return self.copy[ids].sum(1)
