"""Algebraic collapse, exact for all inputs and parameters: the sum over outputs goes into the weight, at every call."""

import torch
from torch import nn

TASK = "linear_sum"


class ModelNew(nn.Module):
    """A matrix-vector product."""

    def __init__(self, inputs: int, hidden: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mv(x, self.weight.sum(dim=0)).mul_(self.scale / 2).unsqueeze(1)
