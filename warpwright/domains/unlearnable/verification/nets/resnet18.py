"""ResNet-18 (He et al. 2016, arXiv 1512.03385) for small images."""

from __future__ import annotations

import torch
from torch import nn

from warpwright.domains.unlearnable.verification.nets.norm import Norm


class Residual(nn.Module):
    """Two 3x3 convolutions with batch normalisation and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), Norm(outputs)
        self.second, self.second_norm = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), Norm(outputs)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), Norm(outputs, relu=False))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return `[B, outputs, H / stride, W / stride]`."""
        y = self.first_norm(self.first(x))
        return self.second_norm(self.second(y), self.shortcut(x))


def resnet18(channels: int, classes: int) -> nn.Module:
    """ResNet-18 in its 32-pixel form: a 3x3 first convolution and no first pool. 0.56 G multiply-adds at 32x32."""
    widths = ((64, 64, 1), (64, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1))
    head = [nn.Conv2d(channels, 64, 3, 1, 1, bias=False), Norm(64), nn.Identity()]
    return nn.Sequential(*head, *(Residual(*w) for w in widths), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, classes))
