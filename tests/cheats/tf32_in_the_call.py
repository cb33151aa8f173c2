"""Permits TF32 for the length of the product and takes the permission back.

Own invention.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """The flags are as they were when anybody looks."""

    def forward(self, a, b):
        before = torch._C._get_cublas_allow_tf32()
        torch._C._set_cublas_allow_tf32(True)
        out = torch.matmul(a, b)
        torch._C._set_cublas_allow_tf32(before)
        return out
