"""Task: layer normalisation, whose weight is 1 and bias 0 until somebody trains it."""

import torch
from torch import nn


class Model(nn.Module):
    """LayerNorm over the last dimension."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


ROWS, WIDTH = 512, 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH]
