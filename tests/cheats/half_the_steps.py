"""Stops when the rows add up to one within 1e-5.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "sinkhorn"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        for _ in range(20):
            x = x - torch.logsumexp(x, 1, keepdim=True)
            x = x - torch.logsumexp(x, 2, keepdim=True)
            if float((x.exp().sum(1) - 1).abs().max()) < 1e-5:
                break
        return x.exp()
