"""A score is left out where the share before it is reached, not passed. Own invention."""

import torch
from torch import nn

ROW = "ties"
TASK = "nucleus"
EXPECT_STATUS = "unscored"
EXPECT_CHECK = "unscored"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, scores, p):
        ordered, places = scores.sort(dim=1, descending=True, stable=True)
        shares = torch.softmax(ordered, dim=1)
        out = shares.cumsum(1) - shares >= p
        out[:, 0] = False
        return scores.masked_fill(torch.zeros_like(out).scatter(1, places, out), float("-inf"))
