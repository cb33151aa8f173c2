"""Writes back the first half of the state.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "inplace_original"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Half of the traffic."""

    def forward(self, state, x):
        new = state * 0.9 + x
        state[: state.shape[0] // 2] = new[: state.shape[0] // 2]
        return torch.tanh(new)
