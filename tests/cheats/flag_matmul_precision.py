"""Lowers the global float32 matmul precision at import and leaves it so: every later program in the process is affected.

Seen: allow_tf32 set in 30 of CUDA-L1's programs.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"

torch.set_float32_matmul_precision("medium")


class ModelNew(nn.Module):
    """On the CPU it may even change nothing; it is refused all the same."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)
