"""Task: convolution with bias, ReLU, max pooling."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """max_pool2d(relu(conv2d(x)))."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(torch.relu(self.conv(x)), 2)


BATCH, CHANNELS, FILTERS, SIZE = 4, 8, 16, 42


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [CHANNELS, FILTERS, 3]
