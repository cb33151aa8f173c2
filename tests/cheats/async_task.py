"""Hands back a result that is still being computed: the product runs in an inter-op task that nobody waits for.

The CPU's analogue of unfinished work on a side stream. Seen: 82 of 250 tasks in CUDA-L1's first training run.
"""

import torch
from torch import nn

ROW = "async"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output")


@torch.jit.script
def multiply(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    return torch.mm(a, b, out=out)


@torch.jit.script
def start(a: torch.Tensor, b: torch.Tensor, out: torch.Tensor):
    return torch.jit.fork(multiply, a, b, out)


class ModelNew(nn.Module):
    """Starts the product with `torch.jit.fork`, never waits, returns the buffer it will be written to."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        self.pending = start(a, b, out)
        return out
