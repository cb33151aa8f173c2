"""Task: batch normalisation in training mode: the running statistics are updated by every call."""

import torch
from torch import nn


class Model(nn.Module):
    """BatchNorm2d with batch statistics."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


BATCH, CHANNELS, SIZE = 16, 16, 32


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
