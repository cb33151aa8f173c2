"""Task: the conjugate spectrum of rows, weighed: a view that torch conjugates when it is read."""

import torch
from torch import nn


class Model(nn.Module):
    """conj(rfft(x)) * weight, and the conjugate of that."""

    def __init__(self, bins: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(bins, dtype=torch.complex64))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.fft.rfft(x).conj() * self.weight
        return y, y.conj()


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 128)]


def get_init_inputs() -> list[object]:
    return [65]
