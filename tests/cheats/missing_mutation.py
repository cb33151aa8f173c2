"""Leaves the first input as it was, although the original updates it in place: the output is right, the state is lost.

Seen: KernelBench does not look at inputs after the call.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "inplace_original"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "input_mutated"


class ModelNew(nn.Module):
    """Out of place."""

    def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(state * 0.9 + x)
