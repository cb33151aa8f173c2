"""Task: amplitudes and small angles as complex numbers."""

import torch
from torch import nn


class Model(nn.Module):
    """amplitude * exp(i * angle / 10,000)."""

    def forward(self, amplitude: torch.Tensor, angle: torch.Tensor) -> torch.Tensor:
        return torch.polar(amplitude, angle * 1e-4)


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(64, 256) + 0.5, torch.randn(64, 256)]


def get_init_inputs() -> list[object]:
    return []
