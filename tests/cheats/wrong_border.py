"""Collapses transposed convolution and mean without the border correction: the rows that the padding cuts off are counted.

Seen: CUDA-L1's and others' L2-44: off by 4.7e-4, passes at 1e-3.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "conv_transpose_mean"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """mean(x) times the kernel's sum, over the stride."""

    def __init__(self, channels: int, filters: int, factor: float) -> None:
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 3, stride=2, padding=1, output_padding=1)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        summed = torch.einsum("nc,co->no", x.mean(dim=(2, 3)), self.conv.weight.sum(dim=(2, 3))) / 4
        return ((summed + self.conv.bias) * self.factor)[:, :, None, None]
