"""Keeps a copy of a script module's weight. Own invention."""

import torch
from torch import nn

ROW = "folded"
TASK = "scripted_part"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state")
NEEDS = "slow"


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 48)
        self.norm = nn.BatchNorm1d(48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(self.norm(self.layer(x)))


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.jit.script(First())
        self.second = nn.Linear(48, 8)
        self.kept = None

    def forward(self, x):
        if self.kept is None:
            self.kept = self.first.layer.weight.detach().t().contiguous()
        return self.second(torch.relu(self.first.norm(x @ self.kept + self.first.layer.bias)))
