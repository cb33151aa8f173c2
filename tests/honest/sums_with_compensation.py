"""Kahan sums over the outputs."""

import torch
from torch import nn

TASK = "linear_sum"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, inputs, hidden, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale

    def forward(self, x):
        parts = torch.matmul(x, self.weight.T).mul_(0.5)
        total = lost = x.new_zeros(x.shape[0])
        for at in range(0, parts.shape[1], 16):
            term = parts[:, at : at + 16].sum(1) - lost
            further = total + term
            lost = (further - total) - term
            total = further
        return (total * self.scale)[:, None]
