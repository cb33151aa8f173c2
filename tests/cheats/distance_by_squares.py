"""The distance by squares, which overflow and vanish. Own invention."""

import torch
from torch import nn

ROW = "underflow"
TASK = "bearing"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, ahead, aside):
        return torch.atan2(aside, ahead), (ahead * ahead + aside * aside).sqrt()
