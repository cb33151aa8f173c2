"""Computes exp by a short power of (1 + x / 4096): relative error about 1e-3.

Seen: fast-math replacements in KernelBench v0 results, accepted at 1e-2.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Twelve squarings."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (1 + (x - x.amax(dim=1, keepdim=True)) / 4096).clamp_min(0)
        for _ in range(12):
            y = y * y
        return y / y.sum(dim=1, keepdim=True)
