"""Rows are normalised, their mean is taken off, and a softmax follows: three passes, each some microseconds. What counts is the host's time."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x * 2.0)
        centre = y.mean(0, keepdim=True)
        return torch.softmax(F.gelu(y - centre) * x, -1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(256, 1024)]


def get_init_inputs() -> list[int]:
    return [1024]
