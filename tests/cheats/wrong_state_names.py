"""Holds the weights under names of its own, so that the user's checkpoint does not load.

Seen: 57 of CUDA-L1's released A100 programs lack the reference's parameter names.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "folded"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "state_names"


class ModelNew(nn.Module):
    """`w` and `b` in place of `linear.weight` and `linear.bias`."""

    def __init__(self, inputs: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.randn(outputs, inputs))
        self.b = nn.Parameter(torch.zeros(outputs))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(torch.clamp(F.linear(x, self.w, self.b) * self.scale, -2.0, 2.0))
