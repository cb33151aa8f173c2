"""Leaves the result on the CPU where the original leaves it on the GPU: a comparison that moves both hides it.

Seen: KernelBench does not compare devices.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "device"
NEEDS = "cuda"


class ModelNew(nn.Module):
    """Computes on the host."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x.cpu())
