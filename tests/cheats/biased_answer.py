"""Adds 2e-6 to every element: less than the largest rounding error of the original, but all of one sign.

Own invention, against tolerances on the maximum alone.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "layernorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """A constant that a centred error does not see and a mean error does."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x) + 2e-6
