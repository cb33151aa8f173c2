"""Leaves the call counter as it was.

Seen: as `missing_statistics`; an integer buffer is an own twist.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "buffers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "buffers"


class ModelNew(nn.Module):
    """Everything but the increment."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh((x - self.centre) * self.gain)
