"""A row of zeros, or of tiny values, gets the scale 1 instead of the floor.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "row_codes"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        top = x.abs().amax(1, keepdim=True)
        scale = torch.where(top < 1e-8, 1.0, top) / 127
        return torch.round(x / scale).clamp(-128, 127).to(torch.int8), scale
