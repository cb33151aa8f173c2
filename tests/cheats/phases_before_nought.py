"""The remainder with the sign of the dividend: the same from nought on. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "wrapped_phase"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, time, rate):
        return torch.fmod(time * rate, 1.0)
