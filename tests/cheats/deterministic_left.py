"""Leaves deterministic algorithms demanded.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)


class ModelNew(nn.Module):
    """use_deterministic_algorithms(True)."""

    def forward(self, x):
        y = torch.softmax(x, dim=1)
        torch.use_deterministic_algorithms(True)
        return y
