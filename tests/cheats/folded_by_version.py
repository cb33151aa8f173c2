"""Folds anew when torch's version counter has moved, which a write through .data does not do.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "linear_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)


class ModelNew(nn.Module):
    """The counter is all it looks at, and nobody can tell it to look again."""

    def __init__(self, inputs, hidden, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale
        self.version, self.folded = -1, None

    def forward(self, x):
        if self.version != self.weight._version:
            self.version = self.weight._version
            self.folded = self.weight.detach().sum(dim=0, keepdim=True).T * (self.scale / 2)
        return torch.matmul(x, self.folded)
