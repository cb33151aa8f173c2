"""Rounds only the weight to float16, where an all-positive input and a large output hide it from a relative tolerance.

Seen: CUDA-L1's released programs that store half-precision weights.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "precision"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """The product runs in float32 on rounded weights."""

    def __init__(self, inputs: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.linear(x, self.linear.weight.half().float(), self.linear.bias)
        return F.gelu(torch.clamp(y * self.scale, -2.0, 2.0))
