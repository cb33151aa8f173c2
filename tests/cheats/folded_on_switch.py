"""Folds its layers when its mode is switched, as a program for inference may.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """train() and eval() are when it looks at its weights."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.weight = None

    def train(self, mode=True):
        self.weight = None
        return super().train(mode)

    def forward(self, x):
        if self.weight is None:
            self.weight = self.second.weight @ self.first.weight
            self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight.t())
