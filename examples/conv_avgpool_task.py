"""Task: convolution, then average pooling: together one convolution with a larger kernel and a stride, a fraction of the work."""

import torch
from torch import nn


class Model(nn.Module):
    """sigmoid(avg_pool(conv(x)))."""

    def __init__(self, channels: int, filters: int, window: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3)
        self.pool = nn.AvgPool2d(window)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(self.pool(self.conv(x)))


BATCH, CHANNELS, FILTERS, SIZE, WINDOW = 8, 3, 32, 66, 2


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return [CHANNELS, FILTERS, WINDOW]
