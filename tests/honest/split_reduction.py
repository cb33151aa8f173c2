"""A re-associated reduction: row sums first, then their mean. Rounding differs from the original's, by as little as it should."""

import torch
from torch import nn

TASK = "mse_loss"


class ModelNew(nn.Module):
    """Two-level sum."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        difference = prediction - target
        return (difference * difference).sum(dim=1).sum() / difference.numel()
