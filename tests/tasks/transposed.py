"""Task: the output is a transposed view of a fresh tensor, so its strides are not those of a contiguous one."""

import torch
from torch import nn


class Model(nn.Module):
    """(scale * x) with its last two dimensions exchanged, as a view."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * self.scale).transpose(1, 2)


BATCH, ROWS, WIDTH = 8, 64, 512


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH]
