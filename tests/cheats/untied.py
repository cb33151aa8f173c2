"""Two parameters where the original has one under two names: a change of one does not reach the other.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "tied_head"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "state_names")


class ModelNew(nn.Module):
    """The head's weight apart from the table's."""

    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.head = nn.Linear(width, rows, bias=False)
        self.head.weight.data.copy_(self.table.weight.data)

    def forward(self, ids):
        return self.head(torch.tanh(self.table(ids).mean(1)))
