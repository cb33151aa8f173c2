"""One row, expanded over all rows with stride 0: n values are written where rows x n are due.

Own invention, after the storage check that CUDA-L1 added in November 2025.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "layout"


class ModelNew(nn.Module):
    """The first row's softmax for everybody."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x[:1], dim=1).expand(x.shape)
