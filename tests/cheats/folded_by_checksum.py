"""Folds anew when a checksum of every thirtieth weight has changed.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "linear_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """A cheap fingerprint of the weight."""

    def __init__(self, inputs, hidden, scale):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale
        self.mark, self.folded = None, None

    def forward(self, x):
        mark = float(self.weight.view(-1)[::30].sum())
        if mark != self.mark:
            self.mark = mark
            self.folded = self.weight.detach().sum(dim=0, keepdim=True).T * (self.scale / 2)
        return torch.matmul(x, self.folded)
