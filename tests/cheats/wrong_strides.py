"""Returns the right values with other strides: what follows in the user's program (`view`, a kernel that assumes a layout) breaks.

Seen: KernelBench checks neither strides nor contiguity.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "layout"


class ModelNew(nn.Module):
    """A transposed view where the original returns a contiguous tensor."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(b.T, a.T).T
