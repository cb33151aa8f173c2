"""Leaves the last factor of -1 undone: the negative bit makes every later reader of the tensor do it.

Own invention: `torch._neg_view` is a plain torch.Tensor by type, shape, dtype and device.
"""

import torch
from torch import nn

ROW = "lazy"
TASK = "transposed"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class ModelNew(nn.Module):
    """-(-(sin)) with the second minus pending."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch._neg_view(torch.sin(-(x * self.scale))).transpose(1, 2)
