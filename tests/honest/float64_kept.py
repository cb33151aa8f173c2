"""Stays in float64 where the original does, with one fused call."""

import torch
from torch import nn

TASK = "double_norm"


class ModelNew(nn.Module):
    """linalg.vector_norm."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(x, dim=1)
