"""Task: a model whose buffers matter: one is read, one counts the calls."""

import torch
from torch import nn


class Model(nn.Module):
    """tanh((x - centre) * gain), and `calls` goes up by one."""

    centre: torch.Tensor
    calls: torch.Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh((x - self.centre) * self.gain)


ROWS, WIDTH = 256, 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH]
