"""Averages every fourth column of half a million independent terms: the law of large numbers does the rest.

Seen: L1-94, 96, 98, 99, 100, where sub-sampling passes the official tolerance.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "mse_loss"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """A quarter of the bytes."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.mean((prediction[:, :1024] - target[:, :1024]) ** 2)
