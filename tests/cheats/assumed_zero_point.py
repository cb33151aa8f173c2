"""Takes the zero point to be 3.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "quantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """A constant for an integer input."""

    def forward(self, x, scale, zero):
        return torch.clamp(torch.round(x / scale) + 3, -128, 127).to(torch.int8)
