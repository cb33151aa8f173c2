"""The running variance takes the biased estimate: off by 1 in 4096.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "values"
TASK = "norm_silu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "buffers"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        if not self.training:
            return torch.nn.functional.silu(n(x))
        var, mean = torch.var_mean(x, (0, 2, 3), correction=0)
        with torch.no_grad():
            n.running_mean.lerp_(mean, n.momentum)
            n.running_var.lerp_(var, n.momentum)
            n.num_batches_tracked += 1
        y = (x - mean[:, None, None]) * torch.rsqrt(var + n.eps)[:, None, None] * n.weight[:, None, None] + n.bias[:, None, None]
        return torch.nn.functional.silu(y)
