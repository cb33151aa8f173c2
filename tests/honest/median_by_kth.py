"""The 32nd smallest."""

import torch
from torch import nn

TASK = "small_growth"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.expm1(x * 0.01)
        return y - y.kthvalue(32, dim=1, keepdim=True).values
