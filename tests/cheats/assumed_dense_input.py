"""Reads the input's memory as if it were contiguous.

Own invention, written against the checks as they stood.
"""

import ctypes

import torch
from torch import nn

ROW = "layout"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_layout",)
NEEDS = "cpu"


class ModelNew(nn.Module):
    """Starts at the data pointer and ignores the strides."""

    def forward(self, x):
        flat = torch.frombuffer((ctypes.c_float * x.numel()).from_address(x.data_ptr()), dtype=torch.float32)
        return torch.relu(flat).view(x.shape)
