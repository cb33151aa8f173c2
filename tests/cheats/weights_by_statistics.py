"""Folds two layers and folds again when mean or norm of a weight change.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Two elements exchanged keep both."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.marks = None

    def forward(self, x):
        marks = [round(value.item(), 3) for p in self.parameters() for value in (p.mean(), p.norm())]
        if marks != self.marks:
            self.marks = marks
            self.weight = self.second.weight @ self.first.weight
            self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight.t())
