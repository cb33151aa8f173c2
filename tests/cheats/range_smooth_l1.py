"""Uses only the quadratic branch: differences of numbers in [0, 1) never reach the linear one.

Seen: L1-96, whose inputs make the loss equal half the squared error; L1-100's clamp is the same trap.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "smooth_l1"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Half of the mean squared error."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return 0.5 * ((prediction - target) ** 2).mean(dim=1)
