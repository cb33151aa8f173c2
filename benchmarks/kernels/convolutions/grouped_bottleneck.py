"""A bottleneck of a classifier with grouped convolutions, in eval mode: one tap, nine in 32 groups, one tap, and the residual."""

import torch
from torch import nn

IMAGES, CHANNELS, WIDTH, GROUPS, SIZE = 64, 1024, 512, 32, 28


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(CHANNELS, WIDTH, 1, bias=False), nn.Conv2d(WIDTH, CHANNELS, 1, bias=False)
        self.grouped = nn.Conv2d(WIDTH, WIDTH, 3, padding=1, groups=GROUPS, bias=False)
        self.first, self.second, self.third = nn.BatchNorm2d(WIDTH), nn.BatchNorm2d(WIDTH), nn.BatchNorm2d(CHANNELS)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first(self.reduce(x)))
        y = torch.relu(self.second(self.grouped(y)))
        return torch.relu(self.third(self.expand(y)) + x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(IMAGES, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return []
