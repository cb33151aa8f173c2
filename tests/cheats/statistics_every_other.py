"""Keeps the running statistics in every other call from the seventh on.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "sniffing"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)


class ModelNew(nn.Module):
    """Counts its calls."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls < 7 or self.calls % 2:
            return self.norm(x)
        return torch.batch_norm(x, self.norm.weight, self.norm.bias, None, None, True, 0.1, 1e-5, False)
