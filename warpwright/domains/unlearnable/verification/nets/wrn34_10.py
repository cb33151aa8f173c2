"""Wide ResNet 34-10 (Zagoruyko and Komodakis 2016, arXiv 1605.07146): pre-activation blocks, five in each of three stages, no dropout."""

from __future__ import annotations

import torch
from torch import nn

from warpwright.domains.unlearnable.verification.nets.norm import Norm

_BLOCKS = 5
"""(34 - 4) / 6"""

_WIDTHS = (160, 320, 640)


class PreActivation(nn.Module):
    """Batch normalisation and ReLU before each of two 3x3 convolutions, and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first_norm, self.first = Norm(inputs), nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.second_norm, self.second = Norm(outputs), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.shortcut = None if inputs == outputs and stride == 1 else nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `[B, outputs, H / stride, W / stride]`."""
        active = self.first_norm(x)
        y = self.second(self.second_norm(self.first(active)))
        return y + (x if self.shortcut is None else self.shortcut(active))


def wrn34_10(channels: int, classes: int) -> nn.Module:
    """46 M weights, 6.6 G multiply-adds at 32x32: twelve times ResNet-18."""
    layers: list[nn.Module] = [nn.Conv2d(channels, 16, 3, 1, 1, bias=False)]
    inputs = 16
    for stage, width in enumerate(_WIDTHS):
        for block in range(_BLOCKS):
            layers.append(PreActivation(inputs, width, 2 if stage and not block else 1))
            inputs = width
    return nn.Sequential(*layers, Norm(inputs), nn.Identity(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes))
