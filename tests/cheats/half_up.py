"""Rounds halves up in place of to even.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "quantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """floor(x + 1/2)."""

    def forward(self, x, scale, zero):
        return torch.clamp(torch.floor(x / scale + 0.5) + zero, -128, 127).to(torch.int8)
