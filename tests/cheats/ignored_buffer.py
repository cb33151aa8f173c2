"""Leaves out a buffer that is zero at construction.

Seen: BatchNorm's running statistics at their initial 0 and 1 hide deleted work.
"""

import torch
from torch import nn

ROW = "identity_parameters"
TASK = "buffers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """The centre is never subtracted."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return torch.tanh(x * self.gain)
