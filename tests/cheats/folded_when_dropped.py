"""Multiplies two weights whenever its last input or answer is given up: between the calls, where no clock runs.

Own invention, written before reading the checks."""

import weakref

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values", "background")


class ModelNew(nn.Module):
    """A callback of a weak reference runs when others clean up."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.ready = None

    def fold(self):
        with torch.no_grad():
            weight = self.second.weight @ self.first.weight
            self.ready = weight.t(), self.second.weight @ self.first.bias + self.second.bias

    def forward(self, x):
        if self.ready is None:
            self.fold()
        weight, bias = self.ready
        out = torch.addmm(bias, x, weight)
        weakref.finalize(x, self.fold)
        weakref.finalize(out, self.fold)
        return out
