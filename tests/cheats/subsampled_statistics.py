"""Takes a row's mean and variance from half of the row.

Seen: sampled statistics in normalisation kernels (KernelBench-Verified's list).
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "layernorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Half of the reads in the first pass."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        half = x[:, : x.shape[1] // 2]
        mean, variance = half.mean(dim=1, keepdim=True), half.var(dim=1, keepdim=True, unbiased=False)
        return (x - mean) * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias
