"""Returns a larger, expanded view of the scalar: broadcasting hides the wrong shape from a careless comparison.

Seen: shape checks by broadcasting in early forks of KernelBench.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "mse_loss"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "shape"


class ModelNew(nn.Module):
    """Shape [128] with stride 0 in place of shape []."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.mean((prediction - target) ** 2).expand(prediction.shape[0])
