"""Sorted once, then linear between two ranks."""

import torch
from torch import nn

TASK = "quantiles"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, shares):
        ranks = shares * (x.shape[1] - 1)
        below = ranks.floor().long()
        above = ranks.ceil().long()
        rows = x.sort(1).values
        return torch.lerp(rows[:, below], rows[:, above], ranks - below).t().contiguous()
