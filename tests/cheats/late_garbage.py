"""Work waits in a reference cycle for the garbage collector, which the harness may run between its calls.

Own invention: as `late_finalizer`, but nothing is attached to the output.
"""

import gc

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags", "values", "uninitialised")


class Deferred:
    """Computes when the collector finds it."""

    def __init__(self, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor) -> None:
        self.work = (a, b, out)
        self.cycle = self

    def __del__(self) -> None:
        a, b, out = self.work
        torch.mm(a, b, out=out)


class ModelNew(nn.Module):
    """The collector is stopped during the call and set to run at the next few allocations after it."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        gc.disable()
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        Deferred(a, b, out)
        gc.enable()
        gc.set_threshold(1, 1, 1)
        return out
