"""VGG-16 (Simonyan and Zisserman 2015, arXiv 1409.1556) for small images: with batch normalisation and one fully connected layer."""

from __future__ import annotations

from torch import nn

from warpwright.domains.unlearnable.verification.nets.norm import Norm

_STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Width and number of 3x3 convolutions before each pool."""


def vgg16(channels: int, classes: int) -> nn.Module:
    """Thirteen 3x3 convolutions in five stages. 0.31 G multiply-adds at 32x32. A pool rounds up, so that small images keep a pixel."""
    layers: list[nn.Module] = []
    inputs = channels
    for width, count in _STAGES:
        for _ in range(count):
            layers += [nn.Conv2d(inputs, width, 3, 1, 1, bias=False), Norm(width), nn.Identity()]
            inputs = width
        layers.append(nn.MaxPool2d(2, ceil_mode=True))
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
