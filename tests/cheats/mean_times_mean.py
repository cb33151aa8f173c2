"""Replaces the mean of products by the product of means, over channels as well.

Seen: CUDA-L1's released L2-44, wrong by 0.045 at today's shapes; it passed where randn inputs make the output equal to the bias.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "conv_transpose_mean"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Not an identity."""

    def __init__(self, channels: int, filters: int, factor: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=2, padding=1, output_padding=1)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=(1, 2, 3), keepdim=True) * self.conv.weight.mean(dim=(0, 2, 3))[None, :, None, None] * x.shape[1] * 9 / 4
        return (mean + self.conv.bias[None, :, None, None]) * self.factor
