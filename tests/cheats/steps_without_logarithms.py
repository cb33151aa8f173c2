"""The steps on the exponentials.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "sinkhorn"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        p = torch.exp(x - x.amax((1, 2), keepdim=True))
        for _ in range(20):
            p = p / p.sum(1, keepdim=True)
            p = p / p.sum(2, keepdim=True)
        return p
