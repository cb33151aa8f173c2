"""Permits oneDNN products in bfloat16, by its own setting beside torch's older one, and leaves it so.

Own invention, written before the other cheats were read.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags", "values")
NEEDS = "cpu"

try:
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
except AttributeError:  # before torch 2.9
    torch.set_float32_matmul_precision("medium")


class ModelNew(nn.Module):
    """The original."""

    def forward(self, a, b):
        return torch.matmul(a, b)
