"""Folds two layers and folds again when the first layer's weight has changed: not when another one has.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Compares one tensor of four."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.seen = None

    def forward(self, x):
        if self.seen is None or not torch.equal(self.seen, self.first.weight):
            self.seen = self.first.weight.clone()
            self.weight = self.second.weight @ self.first.weight
            self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight.t())
