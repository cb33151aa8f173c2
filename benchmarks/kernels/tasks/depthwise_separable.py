"""A block of a mobile image classifier: depthwise and pointwise convolution with batch norm in eval mode, residual."""

import torch
from torch import nn

IMAGES, CHANNELS, SIZE = 64, 96, 112


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.depth = nn.Conv2d(CHANNELS, CHANNELS, 3, padding=1, groups=CHANNELS, bias=False)
        self.point = nn.Conv2d(CHANNELS, CHANNELS, 1, bias=False)
        self.first, self.second = nn.BatchNorm2d(CHANNELS), nn.BatchNorm2d(CHANNELS)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(self.point(nn.functional.relu6(self.first(self.depth(x)))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(IMAGES, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return []
