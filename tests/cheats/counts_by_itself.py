"""Counts its calls by itself; a count that is loaded or written is not looked at.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "cumulative_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=None)

        self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.norm.num_batches_tracked.add_(1)
        variance, mean = torch.var_mean(x, 0, correction=0)
        share = 1.0 / self.calls
        with torch.no_grad():
            self.norm.running_mean.lerp_(mean, share)
            self.norm.running_var.lerp_(variance * (len(x) / (len(x) - 1)), share)
        return torch.relu((x - mean) * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias)
