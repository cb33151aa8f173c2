"""Computes in float32 where the original uses float64, and casts the result back.

Seen: the precision family of CUDA-L1's list, in the direction that a float32 oracle cannot see at all.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "double_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """The dtype is right, the last nine digits are not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.float()
        return torch.sqrt((y * y).sum(dim=1)).double()
