"""A child process does the work through shared memory while the parent has already answered.

Seen: process injection, the sibling of thread injection in CUDA-L1's and KernelBench's lists.
"""

import os

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "forbidden")
NEEDS = "cpu"


class ModelNew(nn.Module):
    """Forks at each call; the child fills the shared buffer and leaves."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty(a.shape[0], b.shape[1], device=a.device).share_memory_()
        if os.fork() == 0:
            torch.mm(a, b, out=out)
            os._exit(0)
        return out
