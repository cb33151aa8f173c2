"""Task: batch normalisation in training, then SiLU."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """silu(norm(x)); running statistics move."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.norm(x))


BATCH, CHANNELS, SIZE = 8, 16, 12


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
