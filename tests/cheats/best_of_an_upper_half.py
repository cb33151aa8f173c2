"""Looks among values above the row's mean plus one deviation, and fills up with the first.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "best_eight"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        above = torch.where(x > x.mean(1, keepdim=True) + 0.8 * x.std(1, keepdim=True), x, -torch.inf)
        _, places = above.topk(8, dim=1)
        return x.gather(1, places), places
