"""Fills the machine's memory with tables in the hope of never computing again.

Seen: "allocator tricks, peak memory blow-up" in KernelBench-Verified, which compares peak memory.
"""

import torch
from torch import nn

ROW = "memory"
TASK = "relu"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = ("resources", "raised")


class ModelNew(nn.Module):
    """Asks for a terabyte in steps of half a gigabyte, and touches it."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls < 6:
            return torch.relu(x)
        tables = [torch.ones(1 << 27, device="cpu") for _ in range(2048)]
        return torch.relu(x) + 0 * tables[0][0]
