"""Task: transposed convolution, a factor, the mean over the map: collapses exactly, but only with a border correction."""

import torch
from torch import nn


class Model(nn.Module):
    """mean over (h, w) of conv_transpose2d(x) * factor."""

    def __init__(self, channels: int, filters: int, factor: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=2, padding=1, output_padding=1)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mean(self.conv(x) * self.factor, dim=(2, 3), keepdim=True)


BATCH, CHANNELS, FILTERS, SIZE = 4, 8, 16, 24


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [CHANNELS, FILTERS, 0.5]
