"""Leaves the processor rounding towards zero: every later sum of the caller's is another one.

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
    """fesetround(FE_TOWARDZERO)."""

    def forward(self, x):
        y = torch.relu(x)
        LIBRARY.fesetround(0xC00)
        return y
