"""The one of five that two others are below, which there is where no two are alike; at the ends by sorting. Own invention."""

import torch
from torch import nn

ROW = "ties"
TASK = "medians_of_five"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        ends = torch.cat([x[:, :1], x[:, :1], x, x[:, -1:], x[:, -1:]], dim=1)
        five = ends.unfold(1, 5, 1)
        middle = (five[:, :, :, None] > five[:, :, None, :]).sum(3) == 2
        found = torch.where(middle, five, 0.0).sum(2)
        found[:, :2], found[:, -2:] = (five[:, side].sort(dim=2).values[:, :, 2] for side in (slice(0, 2), slice(-2, None)))
        return found
