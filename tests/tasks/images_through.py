"""Task: two convolutions in the order of memory that they come in."""

import torch
from torch import nn


class Model(nn.Module):
    """second(relu(first(x)))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(2, 16, 24, 24)]


def get_init_inputs() -> list[object]:
    return [16]
