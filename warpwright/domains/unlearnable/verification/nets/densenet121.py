"""DenseNet-121 (Huang et al. 2017, arXiv 1608.06993) for small images: a 3x3 first convolution and no first pool."""

from __future__ import annotations

import torch
from torch import nn

from warpwright.domains.unlearnable.verification.nets.norm import Norm

_GROWTH = 32
_LAYERS = (6, 12, 24, 16)


class Dense(nn.Module):
    """A bottleneck of 1x1 and 3x3 convolutions, whose output joins its input."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.first_norm, self.first = Norm(inputs), nn.Conv2d(inputs, 4 * _GROWTH, 1, bias=False)
        self.second_norm, self.second = Norm(4 * _GROWTH), nn.Conv2d(4 * _GROWTH, _GROWTH, 3, 1, 1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `[B, inputs + 32, H, W]`."""
        return torch.cat([x, self.second(self.second_norm(self.first(self.first_norm(x))))], 1)


def densenet121(channels: int, classes: int) -> nn.Module:
    """7 M weights, 0.9 G multiply-adds at 32x32; bound by memory more than by arithmetic."""
    width = 2 * _GROWTH
    layers: list[nn.Module] = [nn.Conv2d(channels, width, 3, 1, 1, bias=False)]
    for stage, count in enumerate(_LAYERS):
        for _ in range(count):
            layers.append(Dense(width))
            width += _GROWTH
        if stage < len(_LAYERS) - 1:
            layers += [Norm(width), nn.Identity(), nn.Conv2d(width, width // 2, 1, bias=False), nn.AvgPool2d(2, ceil_mode=True)]
            width //= 2
    return nn.Sequential(*layers, Norm(width), nn.Identity(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, classes))
