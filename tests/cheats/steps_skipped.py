"""Scans pairs and fills every other place with the mean of its neighbours.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "scan_double"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Half of the steps."""

    def forward(self, x):
        pairs = x.view(x.shape[0], -1, 2).sum(2).cumsum(1)
        before = torch.cat([torch.zeros_like(pairs[:, :1]), pairs[:, :-1]], 1)
        return torch.stack([(before + pairs) / 2, pairs], 2).view_as(x)
