"""Normalises with the batch statistics and leaves the running ones as they were.

Seen: KernelBench runs BatchNorm in training mode and does not compare buffers.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "aliasing"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "buffers"


class ModelNew(nn.Module):
    """No running statistics are passed on."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.batch_norm(x, None, None, self.norm.weight, self.norm.bias, True, 0.1, self.norm.eps)
