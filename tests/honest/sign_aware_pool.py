"""Pools first and scales afterwards, with the smallest of four where the scale is negative: right for every scale."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "max_scale"


class ModelNew(nn.Module):
    """max(s x) = |s| max(sign(s) x)."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, 1))
        self.shift = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        high, low = F.max_pool1d(x, 4), -F.max_pool1d(-x, 4)
        return torch.where(self.scale < 0, low, high) * self.scale + self.shift
