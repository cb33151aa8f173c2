"""Shifts by a division in float64, which holds 53 bits. Own invention."""

import torch
from torch import nn

ROW = "precision"
TASK = "mixed_hash"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        x = (x ^ torch.floor(x.double() / 2.0**29).long()) * 0x1F58_476D_1CE4_E5B9
        return x ^ (x >> 32)
