"""A shift longer than the row, or negative, is not wrapped.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "shift_switch"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, alpha, steps, reverse):
        if 0 <= steps <= x.shape[1]:
            rolled = torch.cat((x[:, x.shape[1] - steps :], x[:, : x.shape[1] - steps]), 1)
        else:
            rolled = torch.cat((x[:, -(steps % 64) :], x[:, : -(steps % 64)]), 1)
        y = rolled * alpha + x
        return y.flip(1) if reverse else y
