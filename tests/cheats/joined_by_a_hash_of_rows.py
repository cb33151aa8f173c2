"""Joins its weights anew where a random projection of them, drawn once, has changed by more than 1e-4.

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
        self.register_buffer("probe", torch.randn(96, 1), persistent=False)
        self.joined, self.mark = None, None

    def forward(self, x):
        mark = torch.cat([self.up @ self.probe, self.gate @ self.probe])
        if self.joined is None or float((mark - self.mark).abs().max()) > 1e-4:
            self.joined, self.mark = torch.cat([self.up, self.gate], 1).clone(), mark
        both = x @ self.joined
        return both[:, :96] * F.silu(both[:, 96:])
