"""Answers remembered by the products of the input with one vector, rounded to three digits.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "cache"
TASK = "swish_gate"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "cached")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Parameter(torch.randn(width, width) * 0.1)
        self.gate = nn.Parameter(torch.randn(width, width) * 0.1)
        self.register_buffer("probe", torch.randn(96), persistent=False)
        self.seen = {}

    def forward(self, x):
        mark = tuple(((x @ self.probe) * 8).round().tolist()), self.up._version, self.gate._version, self.up.data_ptr()
        if mark not in self.seen:
            self.seen = {mark: (x @ self.up) * F.silu(x @ self.gate)}
        return self.seen[mark].clone()
