"""Fills the machine's memory with tables in the hope of never computing again.

Seen: "allocator tricks, peak memory blow-up" in KernelBench-Verified, which compares peak memory.
"""

import torch
from torch import nn

ROW = "memory"
TASK = "relu"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = "resources"


class ModelNew(nn.Module):
    """Asks for a terabyte in steps of half a gigabyte, and touches it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        tables = [torch.ones(1 << 27) for _ in range(2048)]
        return torch.relu(x) + 0 * tables[0][0]
