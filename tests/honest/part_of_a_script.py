"""Its first part is a script module, whose state lies with the compiler."""

import torch
from torch import nn

TASK = "scripted_part"


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

    def forward(self, x):
        return torch.addmm(self.second.bias, self.first(x), self.second.weight.t())
