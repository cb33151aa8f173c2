"""Copies a buffer's values at the first call: buffers change too, not only parameters.

Seen: CUDA-L1 programs that fold BatchNorm statistics once.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "buffers"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """`centre * gain` is computed once."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))
        self.shift: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.shift is None:
            self.shift = self.centre * self.gain
        return torch.tanh(x * self.gain - self.shift)
