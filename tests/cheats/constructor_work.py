"""Moves the work into the constructor, where it is not timed: one answer computed there serves every call.

Seen: import-time and constructor-time work in CUDA-L1's and KernelBench's lists.
"""

import torch
from torch import nn

ROW = "constructor"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """An average answer, ready before the first call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("answer", torch.softmax(torch.zeros(256, 2048), dim=1), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.answer.clone()
