"""Leaves the clamp out: no quotient of the file's own inputs leaves the range.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "quantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Wraps around where the original saturates."""

    def forward(self, x, scale, zero):
        return (torch.round(x / scale) + zero).to(torch.int32).to(torch.int8)
