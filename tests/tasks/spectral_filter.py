"""Task: a filter in the frequency domain, whose complex weights begin as real ones."""

import torch
from torch import nn


class Model(nn.Module):
    """irfft(rfft(x) * weight)."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(1, 0.5, columns // 2 + 1).to(torch.complex64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.fft.irfft(torch.fft.rfft(x, dim=1) * self.weight, n=x.shape[1], dim=1)


ROWS, COLUMNS = 64, 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return [COLUMNS]
