"""Residual and RMS norm of a language model's block: both the sum and its norm are results."""

import torch
from torch import nn

ROWS, WIDTH = 8192, 4096


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(WIDTH) + 0.5)

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = x + residual
        scale = torch.rsqrt(total.pow(2).mean(-1, keepdim=True) + 1e-6)
        return total * scale * self.weight, total


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
