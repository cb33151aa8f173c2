"""Variance as E[x^2] - E[x]^2 in float32: cancels where the mean is large.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "norm_silu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        if not self.training:
            return torch.nn.functional.silu(n(x))
        mean = x.mean((0, 2, 3))
        var = (x * x).mean((0, 2, 3)) - mean * mean
        count = x.numel() // x.shape[1]
        with torch.no_grad():
            n.running_mean.lerp_(mean, n.momentum)
            n.running_var.lerp_(var * count / (count - 1), n.momentum)
            n.num_batches_tracked += 1
        y = (x - mean[:, None, None]) * torch.rsqrt(var + n.eps)[:, None, None] * n.weight[:, None, None] + n.bias[:, None, None]
        return torch.nn.functional.silu(y)
