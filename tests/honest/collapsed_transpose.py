"""The collapse of transposed convolution and mean with its border correction: first row and column lose kernel row and column 0.

With stride 2, padding 1 and output padding 1, input (0, .) never meets kernel row 0, and every other (i, k) pair lands inside once.
"""

import torch
from torch import nn

TASK = "conv_transpose_mean"


class ModelNew(nn.Module):
    """Four sums of the input (all, first row, first column, corner) against four sums of the kernel."""

    def __init__(self, channels: int, filters: int, factor: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=2, padding=1, output_padding=1)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w = self.conv.weight
        inputs = torch.cat([x.sum(dim=(2, 3)), -x[:, :, 0].sum(dim=2), -x[:, :, :, 0].sum(dim=2), x[:, :, 0, 0]], dim=1)
        kernels = torch.cat([w.sum(dim=(2, 3)), w[:, :, 0].sum(dim=2), w[:, :, :, 0].sum(dim=2), w[:, :, 0, 0]], dim=0)
        mean = inputs @ kernels / (4 * x.shape[2] * x.shape[3])
        return ((mean + self.conv.bias) * self.factor)[:, :, None, None]
