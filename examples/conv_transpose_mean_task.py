"""Task: transposed convolution with stride and padding, then the mean over the map: sums of the input and of the kernel, less a border."""

import torch
from torch import nn


class Model(nn.Module):
    """mean over (height, width) of conv_transpose(x) * factor."""

    def __init__(self, channels: int, filters: int, factor: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=2, padding=1, output_padding=1)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mean(self.conv(x) * self.factor, dim=(2, 3), keepdim=True)


BATCH, CHANNELS, FILTERS, SIZE = 16, 32, 16, 32


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[object]:
    return [CHANNELS, FILTERS, 0.5]
