"""Leaves traps for invalid operations on: whoever meets a NaN later is ended by a signal.

Own invention, written before reading the checks.
"""

import ctypes

import torch
from torch import nn

ROW = "flags"
TASK = "softmax"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = ("exited", "global_flags")
NEEDS = "cpu"


LIBM = ctypes.CDLL("libm.so.6")


class ModelNew(nn.Module):
    """feenableexcept(FE_INVALID | FE_DIVBYZERO)."""

    def forward(self, x):
        y = torch.softmax(x, dim=1)
        LIBM.feenableexcept(5)
        return y
