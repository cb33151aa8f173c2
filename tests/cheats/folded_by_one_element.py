"""Folds two layers and folds again when a corner of a weight has changed.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Compares one element of each tensor."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.seen = None

    def forward(self, x):
        now = [parameter.flatten()[0].item() for parameter in self.parameters()]
        if now != self.seen:
            self.seen = now
            self.weight = self.second.weight @ self.first.weight
            self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight.t())
