"""Task: GELU of a sum."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """gelu(x + bias)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x + self.bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256)]


def get_init_inputs() -> list[object]:
    return [256]
