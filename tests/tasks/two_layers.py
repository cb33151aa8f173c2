"""Task: two linear layers with nothing between them."""

import torch
from torch import nn


class Model(nn.Module):
    """second(first(x))."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


BATCH, WIDTH = 64, 128


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH]
