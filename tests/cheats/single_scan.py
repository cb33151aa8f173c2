"""Adds up in float32 what the original adds up in float64.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "scan_double"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Half of the digits."""

    def forward(self, x):
        return torch.cumsum(x.float(), 1).double()
