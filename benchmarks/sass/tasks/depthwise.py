"""A task for `optimize --polish`: a depthwise convolution, whose CUDA kernel of ours is bound by more than memory."""

import torch
from torch import nn


class Model(nn.Module):
    """relu(depthwise 7 x 7)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.conv(x)) * 1.5


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(32, 96, 56, 56)]


def get_init_inputs() -> list[int]:
    return [96]
