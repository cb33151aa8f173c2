"""One folded weight for all modules of the class, made anew where the one that comes is another. Own invention."""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values", "cached")


FOLDED = {}


class ModelNew(nn.Module):
    """By the versions alone: two modules whose parameters were written as often are one."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def refresh(self):
        FOLDED.clear()

    def forward(self, x):
        key = tuple(p._version for p in self.parameters())
        if key not in FOLDED:
            FOLDED.clear()
            weight = self.second.weight.double() @ self.first.weight.double()
            FOLDED[key] = weight.t().float(), self.second.bias + self.second.weight @ self.first.bias
        weight, bias = FOLDED[key]
        return torch.addmm(bias, x, weight)
