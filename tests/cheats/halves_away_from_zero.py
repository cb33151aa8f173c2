"""Rounds halves away from zero.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "ties"
TASK = "row_codes"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        scale = x.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
        y = x / scale
        return (torch.sign(y) * torch.floor(y.abs() + 0.5)).clamp(-128, 127).to(torch.int8), scale
