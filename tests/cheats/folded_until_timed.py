"""Compares its weights with the folded ones before each of the first forty calls, and never again.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "timing"


class ModelNew(nn.Module):
    """Tired of looking."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.seen, self.looks = [], 0

    def forward(self, x):
        self.looks += 1
        if self.looks < 40:
            now = [parameter.detach() for parameter in self.parameters()]
            if not self.seen or not all(torch.equal(old, new) for old, new in zip(self.seen, now, strict=True)):
                self.looks = 0
                self.seen = [tensor.clone() for tensor in now]
                self.weight = self.second.weight @ self.first.weight
                self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight.t())
