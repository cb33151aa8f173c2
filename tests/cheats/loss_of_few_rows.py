"""The mean over the rows but one.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "mse_loss"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """127 of 128."""

    def forward(self, prediction, target):
        return torch.mean((prediction[:-1] - target[:-1]) ** 2)
