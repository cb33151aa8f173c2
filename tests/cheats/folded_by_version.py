"""Folds two layers and folds again when a version counter says that a weight has changed: `.data` is written without one.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Looks at version counters."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.seen = None

    def forward(self, x):
        now = tuple(parameter._version for parameter in self.parameters())
        if now != self.seen:
            self.seen = now
            self.weight = self.second.weight @ self.first.weight
            self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight.t())
