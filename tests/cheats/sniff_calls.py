"""Honest for the first forty calls, which is where it expects the checks to end, and lazy afterwards.

Seen: test-mode sniffing in KernelBench-Verified's and SOL-ExecBench's lists.
"""

import torch
from torch import nn

ROW = "sniffing"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state")
NEEDS = "timing"


class ModelNew(nn.Module):
    """Counts."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls <= 40:
            return torch.matmul(a, b)
        return torch.zeros(a.shape[0], b.shape[1], device=a.device)
