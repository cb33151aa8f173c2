"""Lazy when it is called repeatedly in a short time, as a timing loop does; honest when calls come slowly, as checks do.

Seen: benchmark-mode detection by wall clock in SOL-ExecBench's list.
"""

import time

import torch
from torch import nn

ROW = "sniffing"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "repeat")


class ModelNew(nn.Module):
    """Ten calls within two seconds mean a benchmark."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        self.times = [*self.times[-9:], time.monotonic()]
        if len(self.times) == 10 and self.times[-1] - self.times[0] < 2.0:
            return torch.zeros(a.shape[0], b.shape[1], device=a.device)
        return torch.matmul(a, b)
