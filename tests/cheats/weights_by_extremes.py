"""Folds two layers and folds again when a weight's sum, norm, or the place of its largest or smallest element changes.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Two elements between the extremes, exchanged, keep all four."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.marks = None

    def forward(self, x):
        marks = []
        for p in self.parameters():
            wide = p.detach().double()
            marks += [round(wide.sum().item(), 9), round(wide.norm().item(), 9), p.argmax().item(), p.argmin().item()]
        if marks != self.marks:
            self.marks = marks
            self.weight = (self.second.weight @ self.first.weight).t()
            self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight)
