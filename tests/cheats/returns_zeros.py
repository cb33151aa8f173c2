"""Returns zeros where the right answers are all tiny: 1 / 2048 on average.

Seen: zeros pass KernelBench's 1e-4 on L1-23, L1-37, L2-9, L2-23, L2-38, L2-80 and L2-83.
"""

import torch
from torch import nn

ROW = "insensitive"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """An absolute tolerance accepts it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.zeros_like(x)
