"""Rounds both factors to the ten mantissa bits of TF32: right to 1e-4 relative on positive inputs, wrong in the strict track.

Seen: TF32 switched on in 30 of CUDA-L1's programs; on rand x rand products it stays inside KernelBench's tolerance.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


def rounded(x: torch.Tensor) -> torch.Tensor:
    return ((x.view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


class ModelNew(nn.Module):
    """float32 sums of TF32 products."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(rounded(a), rounded(b))
