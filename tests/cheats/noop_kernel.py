"""The kernel refuses to run, the error is swallowed, and the untouched output buffer is returned.

The CPU's analogue of an unchecked launch failure. Seen: wafer, 65,792 bytes of shared memory on a 64 KiB part, reported as 104x on L2-66.
"""

import torch
from torch import nn

ROW = "failed_launch"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "uninitialised")


class ModelNew(nn.Module):
    """`torch.mm(out=)` with a buffer of the wrong dtype raises before it writes."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        try:
            torch.mm(a.double(), b, out=out)
        except RuntimeError:
            self.failed = True
        return out
