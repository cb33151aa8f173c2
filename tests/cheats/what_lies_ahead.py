"""The direction by the quotient: right for what lies ahead. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "bearing"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, ahead, aside):
        return torch.atan(aside / ahead), torch.hypot(aside, ahead)
