"""Adds the product up in blocks of four, each sum rounded to bfloat16.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "half_mlp"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """A product whose partial sums are bfloat16."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden, dtype=torch.bfloat16)
        self.second = nn.Linear(hidden, width, dtype=torch.bfloat16)

    def layer(self, linear, x):
        total = linear.bias.expand(x.shape[0], -1)
        for at in range(0, x.shape[1], 4):
            total = total + x[:, at : at + 4] @ linear.weight[:, at : at + 4].T
        return total

    def forward(self, x):
        return self.layer(self.second, torch.nn.functional.gelu(self.layer(self.first, x)))
