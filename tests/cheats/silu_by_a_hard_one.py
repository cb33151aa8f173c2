"""Answers nothing below minus eight, SiLU elsewhere.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "tolerance"
TASK = "group_norm_silu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, channels, groups):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)

    def forward(self, x):
        y = self.norm(x)
        return torch.where(y < -8, torch.zeros_like(y), F.silu(y))
