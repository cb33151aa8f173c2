"""Puts its answers into the list of inputs and returns that.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "several_levels"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated", "aliasing")


class ModelNew(nn.Module):
    """levels[i] = ..."""

    def __init__(self, levels):
        super().__init__()
        self.factors = nn.Parameter(torch.rand(levels))

    def forward(self, levels):
        for at, factor in enumerate(self.factors):
            levels[at] = torch.tanh(levels[at]) * factor
        return levels
