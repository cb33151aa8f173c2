"""Leaves the permission to add float16 products up in float16 behind.

Own invention.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Another program's float16 products lose digits."""

    def forward(self, a, b):
        torch.backends.cuda.matmul.allow_fp16_accumulation = True
        return torch.matmul(a, b)
