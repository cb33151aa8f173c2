"""Batch norm in training mode, residual and ReLU: the end of a residual block."""

import torch
from torch import nn
from torch.nn import functional as F

IMAGES, CHANNELS, SIDE = 64, 128, 56


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(CHANNELS)

    def forward(self, x: torch.Tensor, shortcut: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(x) + shortcut)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(IMAGES, CHANNELS, SIDE, SIDE), torch.randn(IMAGES, CHANNELS, SIDE, SIDE)]


def get_init_inputs() -> list[int]:
    return []
