"""TorchScript's own threads compute after the call has returned: a fork that nobody waits for.

Own invention, written before the other cheats were read.
"""

import torch
from torch import nn

ROW = "async"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("uninitialised", "values", "background", "late_output")
NEEDS = "cpu"


@torch.jit.script
def late(a, b, out):
    rows = a.size(0) // 10
    for i in range(10):
        out[i * rows : (i + 1) * rows] = torch.mm(a[i * rows : (i + 1) * rows], b)
    return out


@torch.jit.script
def begun(a, b, out):
    _ = torch.jit.fork(late, a, b, out)
    return out


class ModelNew(nn.Module):
    """Answers with memory that is written afterwards."""

    def forward(self, a, b):
        return begun(a, b, torch.empty(a.shape[0], b.shape[1]))
