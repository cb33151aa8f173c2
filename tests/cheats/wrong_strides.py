"""Returns the right values with other strides: what follows in the user's program (`view`, a kernel that assumes a layout) breaks.

Seen: KernelBench checks neither strides nor contiguity.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "transposed"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "layout"


class ModelNew(nn.Module):
    """The original returns a transposed view; this one a contiguous tensor."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x * self.scale).transpose(1, 2).contiguous()
