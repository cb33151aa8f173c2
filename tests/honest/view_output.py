"""Returns a transposed view with the strides that the original's output has."""

import torch
from torch import nn

TASK = "transposed"


class ModelNew(nn.Module):
    """sin in place on an own temporary."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x * self.scale).sin_().mT
