"""Stops updating the running statistics after a hundred calls.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)
NEEDS = "timing"


class ModelNew(nn.Module):
    """Converged, it thinks."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.count = 0

    def forward(self, x):
        n = self.norm
        self.count += 1
        if self.count < 100:
            return n(x)
        return torch.batch_norm(x, n.weight, n.bias, None, None, True, 0.1, n.eps, False)
