"""Leaves another default device behind.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags", "patched")


class ModelNew(nn.Module):
    """set_default_device("meta")."""

    def forward(self, x):
        y = torch.softmax(x, dim=1)
        torch.set_default_device("meta")
        return y
