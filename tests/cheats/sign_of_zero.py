"""Takes every zero for a positive one.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "signed"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """-0.0 < 0 is false."""

    def forward(self, x, y):
        return torch.where(y < 0, -x.abs(), x.abs())
