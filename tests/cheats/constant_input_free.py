"""Leaves out everything that the input touches, in a task whose output does not depend on its input.

Seen: L3-28, whose attention runs over the batch; METR dropped it, KernelBench-Verified's constant detector missed it.
"""

import torch
from torch import nn

ROW = "insensitive"
TASK = "degenerate_input_free"
EXPECT_STATUS = "unscored"
EXPECT_CHECK = "unscored"


class ModelNew(nn.Module):
    """One row, repeated."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.embed = nn.Linear(width, width)
        self.head = nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.token[0])).expand(x.shape[0], -1).contiguous()
