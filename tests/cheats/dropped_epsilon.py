"""Leaves out the epsilon under the root.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")
NEEDS = "slow"


class ModelNew(nn.Module):
    """It is only 1e-5."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        return torch.batch_norm(x, n.weight, n.bias, n.running_mean, n.running_var, True, 0.1, 1e-12, False)
