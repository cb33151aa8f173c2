"""Leaves the state behind with the digits of bfloat16; the output is right.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "inplace_original"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated",)


class ModelNew(nn.Module):
    """Only the output is looked at, surely."""

    def forward(self, state, x):
        new = state * 0.9 + x
        state.copy_(new.bfloat16())
        return torch.tanh(new)
