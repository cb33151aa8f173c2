"""Rounds to nearest in place of down where the shift is 9.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "shifted_integers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    def forward(self, a, b, shift):
        p = a @ b
        half = torch.where(shift == 9, 1, 0)[:, None].to(torch.int32)
        return torch.clamp((p + half) >> shift[:, None], -128, 127).to(torch.int8)
