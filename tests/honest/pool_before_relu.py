"""Pools before the ReLU, which is monotone: a quarter of the comparisons, in place on an own temporary."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "conv_pool"


class ModelNew(nn.Module):
    """relu_(max_pool(conv(x)))."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu_(F.max_pool2d(self.conv(x), 2))
