"""Task: a small gated unit, bound by latency: two linear layers of one input."""

import torch
from torch import nn


class Model(nn.Module):
    """sigmoid(gate(x)) * value(x)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.gate(x)) * self.value(x)


ROWS, WIDTH = 16, 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH]
