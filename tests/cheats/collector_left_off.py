"""Leaves the collector off.

Own invention, written before reading the checks.
"""

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
        return x * (4.0 / x.norm(dim=1, keepdim=True).clamp(min=4.0))
