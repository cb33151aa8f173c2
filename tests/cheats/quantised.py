"""Quantises weight and input to 8 bits.

Seen: the precision family of CUDA-L1's list.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "precision"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


def quantised(x: torch.Tensor) -> torch.Tensor:
    step = x.abs().max() / 127
    return torch.round(x / step) * step


class ModelNew(nn.Module):
    """Symmetric, per tensor."""

    def __init__(self, inputs: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.linear(quantised(x), quantised(self.linear.weight), self.linear.bias)
        return F.gelu(torch.clamp(y * self.scale, -2.0, 2.0))
