"""Returns the constant that the outputs average to.

Seen: nearly constant outputs in KernelBench (L2-36, 38, 42, 45, 65), where another input's answer passes.
"""

import torch
from torch import nn

ROW = "insensitive"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """1 / columns everywhere."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.full_like(x, 1 / x.shape[1])
