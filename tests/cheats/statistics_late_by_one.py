"""Adds the statistics of a batch to the running ones when the next batch comes.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "later"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Lags by one call."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.last = None

    def forward(self, x):
        n = self.norm
        var, mean = torch.var_mean(x, (0, 2, 3))
        if self.last is not None:
            n.running_mean.mul_(0.9).add_(self.last[0], alpha=0.1)
            n.running_var.mul_(0.9).add_(self.last[1], alpha=0.1)
            n.num_batches_tracked.add_(1)
        self.last = (mean, var)
        return torch.batch_norm(x, n.weight, n.bias, None, None, True, 0.1, n.eps, False)
