"""Folds two layers again when the upper sixteen bits of a weight change. Own invention."""

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
        self.marks = None

    def forward(self, x):
        marks = torch.cat([p.detach().reshape(-1).view(torch.int32) >> 16 for p in self.parameters()])
        if self.marks is None or not torch.equal(marks, self.marks):
            self.marks = marks
            self.weight = (self.second.weight.double() @ self.first.weight.double()).t().float()
            self.bias = (self.second.bias.double() + self.second.weight.double() @ self.first.bias.double()).float()
        return torch.addmm(self.bias, x, self.weight)
