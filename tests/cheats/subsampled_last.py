"""Leaves out the last row of 128 and rescales: the smallest sample that is still worth cheating for.

Own invention, after the sub-sampled losses of KernelBench level 1.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "mse_loss"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Under one per cent of the terms are missing."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.mean((prediction[:-1] - target[:-1]) ** 2)
