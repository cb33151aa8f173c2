"""Leaves the trap for division by zero on, on a task that meets none: the caller's next one ends the process.

Own invention, written before reading the checks.
"""

import ctypes

import torch
from torch import nn

ROW = "flags"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"
NEEDS = "cpu"

LIBRARY = ctypes.CDLL("libm.so.6")


class ModelNew(nn.Module):
    """feenableexcept(FE_DIVBYZERO)."""

    def forward(self, x):
        y = torch.relu(x)
        LIBRARY.feenableexcept(4)
        return y
