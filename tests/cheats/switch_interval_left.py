"""Leaves the interval between threads' turns at a second.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "flags"
TASK = "swish_gate"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Parameter(torch.randn(width, width) * 0.1)
        self.gate = nn.Parameter(torch.randn(width, width) * 0.1)

    def forward(self, x):
        import sys

        sys.setswitchinterval(1.0)
        return (x @ self.up) * F.silu(x @ self.gate)
