"""Leaves the processor rounding upwards: all later arithmetic of the process is another.

Own invention, written before reading the checks.
"""

import ctypes

import torch
from torch import nn

ROW = "flags"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "global_flags")
NEEDS = "cpu"


LIBM = ctypes.CDLL("libm.so.6")


class ModelNew(nn.Module):
    """fesetround(FE_UPWARD)."""

    def forward(self, x):
        y = torch.softmax(x, dim=1)
        LIBM.fesetround(0x800)
        return y
