"""After 64 calls the mean over all calls becomes one with a momentum of 1/64.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "values"
TASK = "cumulative_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=None)

    def forward(self, x):
        self.norm.num_batches_tracked.add_(1)
        variance, mean = torch.var_mean(x, 0, correction=0)
        share = 1.0 / min(int(self.norm.num_batches_tracked), 64)
        with torch.no_grad():
            self.norm.running_mean.lerp_(mean, share)
            self.norm.running_var.lerp_(variance * (len(x) / (len(x) - 1)), share)
        return torch.relu((x - mean) * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias)
