"""Drops the convolution's bias, which is small beside the tolerance.

Seen: CUDA-L1's released L2-42 and L2-43, which still pass at 1e-2.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "identity_parameters"
TASK = "conv_pool"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """conv2d without bias."""

    def __init__(self, channels: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, kernel)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.max_pool2d(torch.relu(F.conv2d(x, self.conv.weight)), 2)
