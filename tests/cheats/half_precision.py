"""Multiplies in bfloat16 and casts back: three decimal digits where the original has seven.

Seen: 32 and more of CUDA-L1's released programs; 6.4 % of the SOL-ExecBench submissions.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """bfloat16 inside, float32 outside."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a.bfloat16(), b.bfloat16()).float()
