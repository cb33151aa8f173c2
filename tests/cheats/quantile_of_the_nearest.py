"""Quantiles near a rank are that rank's value. Own invention."""

import torch
from torch import nn

ROW = "algebra"
TASK = "quantiles"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "raised")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, shares):
        ranks = shares * (x.shape[1] - 1)
        ranks = torch.where((ranks - ranks.round()).abs() < 0.02, ranks.round(), ranks)
        return torch.quantile(x, ranks / (x.shape[1] - 1), dim=1)
