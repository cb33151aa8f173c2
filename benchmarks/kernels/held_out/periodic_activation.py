"""A vocoder's activation with a frequency for each channel."""

import torch
from torch import nn

CLIPS, CHANNELS, SAMPLES = 8, 128, 65536


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.rand(1, CHANNELS, 1) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.sin(self.rate * x).pow(2) / (self.rate + 1e-9)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(CLIPS, CHANNELS, SAMPLES)]


def get_init_inputs() -> list[int]:
    return []
