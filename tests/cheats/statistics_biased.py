"""The running variance of n in place of n - 1.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)


class ModelNew(nn.Module):
    """One pass for the output and the statistics."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        n.running_mean.mul_(0.9).add_(mean, alpha=0.1)
        n.running_var.mul_(0.9).add_(var, alpha=0.1)
        n.num_batches_tracked.add_(1)
        scale = n.weight * torch.rsqrt(var + n.eps)
        return x * scale[:, None, None] + (n.bias - mean * scale)[:, None, None]
