"""Leaves out the subtraction of the row's maximum: exp overflows as soon as the inputs are scaled.

Seen: KernelBench's randn inputs never reach 88; a hidden scaled distribution does.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """exp(x) / sum(exp(x))."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.exp(x)
        return y / y.sum(dim=1, keepdim=True)
