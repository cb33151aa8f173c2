"""Leaves a handler for a signal in each call.

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
        import signal

        self.signal = signal

    def forward(self, x):
        self.signal.signal(self.signal.SIGUSR1, self.signal.SIG_IGN)
        return (x @ self.up) * F.silu(x @ self.gate)
