"""Leaves out a multiply by ones and an add of zeros.

Seen: L2-85 in KernelBench-Verified: deleting the ones-initialised scale passes.
"""

import torch
from torch import nn

ROW = "identity_parameters"
TASK = "max_scale"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """The pooling alone."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, 1))
        self.shift = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool1d(x, 4)
