"""Joins its weights anew where the sum and the norm of one of them have both changed.

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
        self.joined, self.marks = None, None

    def forward(self, x):
        marks = tuple(float(f(w)) for w in (self.up, self.gate) for f in (torch.sum, torch.norm))
        if (
            self.joined is None
            or (marks[0] != self.marks[0] and marks[1] != self.marks[1])
            or (marks[2] != self.marks[2] and marks[3] != self.marks[3])
        ):
            self.joined, self.marks = torch.cat([self.up, self.gate], 1).clone(), marks
        both = x @ self.joined
        return both[:, :96] * F.silu(both[:, 96:])
