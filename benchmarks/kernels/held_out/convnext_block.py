"""A block of a modern convolutional classifier: depthwise 7 x 7, layer norm of channels, two linear layers, layer scale, residual."""

import torch
from torch import nn

IMAGES, CHANNELS, SIZE = 32, 192, 28


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.depth = nn.Conv2d(CHANNELS, CHANNELS, 7, padding=3, groups=CHANNELS)
        self.norm, self.scale = nn.LayerNorm(CHANNELS, eps=1e-6), nn.Parameter(torch.rand(CHANNELS))
        self.wide, self.narrow = nn.Linear(CHANNELS, 4 * CHANNELS), nn.Linear(4 * CHANNELS, CHANNELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        y = self.scale * self.narrow(nn.functional.gelu(self.wide(y)))
        return x + y.permute(0, 3, 1, 2)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(IMAGES, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return []
