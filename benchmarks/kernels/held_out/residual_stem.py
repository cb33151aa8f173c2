"""The first layers of a residual network, batch norm in eval mode."""

import torch
from torch import nn

IMAGES, SIZE = 64, 224


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.max_pool2d(torch.relu(self.norm(self.convolution(x))), 3, 2, 1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(IMAGES, 3, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return []
