"""Casts before it clamps: large values wrap around.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "quantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """The cast to eight bits is the clamp."""

    def forward(self, x, scale, zero):
        return torch.clamp(torch.round(x / scale), -300, 300).add_(zero).to(torch.int32).to(torch.int8)
