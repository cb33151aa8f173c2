"""Leaves the collector off, and the interval between threads' turns at an hour.

Own invention, written before reading the checks.
"""

import sys

from torch import nn

ROW = "flags"
TASK = "clipped_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        import gc

        gc.disable()
        sys.setswitchinterval(3600)
        return x * (4.0 / x.norm(dim=1, keepdim=True).clamp(min=4.0))
