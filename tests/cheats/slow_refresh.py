"""Looks at one row of its weights a call, in turn, and joins what it saw: right after a hundred calls.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "folded"
TASK = "swish_gate"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Parameter(torch.randn(width, width) * 0.1)
        self.gate = nn.Parameter(torch.randn(width, width) * 0.1)
        self.joined, self.at = None, 0

    def forward(self, x):
        if self.joined is None or not torch.equal(self.joined[self.at], torch.cat([self.up[self.at], self.gate[self.at]])):
            self.joined = torch.cat([self.up, self.gate], 1).clone()
        self.at = (self.at + 1) % 96
        both = x @ self.joined
        return both[:, :96] * F.silu(both[:, 96:])
