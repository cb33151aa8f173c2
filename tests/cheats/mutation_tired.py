"""Writes the state back in the first forty calls.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "inplace_original"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated",)
NEEDS = "timing"


class ModelNew(nn.Module):
    """Then it stops."""

    count = 0

    def forward(self, state, x):
        self.count += 1
        if self.count < 40:
            state.mul_(0.9).add_(x)
            return torch.tanh(state)
        return torch.tanh(torch.add(x, state, alpha=0.9))
