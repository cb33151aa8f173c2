"""Keeps the parameters of the constructor in a list: another parameter in the place of one is not seen."""

import torch
from torch import nn

ROW = "folded"
TASK = "two_layers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.held = list(self.parameters())

    def forward(self, x):
        a, b, c, d = self.held
        return torch.addmm(d, torch.addmm(b, x, a.t()), c.t())
