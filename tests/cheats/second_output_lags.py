"""The mean and deviation of the call before.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "values"
TASK = "multi_output"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "cached")
NEEDS = "slow"


class ModelNew(nn.Module):
    """Nobody uses them."""

    last = None

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        std = torch.sqrt(((x - mean) ** 2).mean(1, keepdim=True) + 1e-5)
        old, self.last = self.last or (mean, std), (mean, std)
        return (x - mean) / std, (old[0].clone(), old[1].clone())
