"""Hands out one of 40 buffers in turn: what was returned is overwritten 40 calls later.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "kept"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("output_reuse",)


class ModelNew(nn.Module):
    """A long ring."""

    def __init__(self):
        super().__init__()
        self.ring = []
        self.at = 0

    def forward(self, x):
        if len(self.ring) < 40:
            self.ring.append(torch.relu(x))
            return self.ring[-1]
        self.at += 1
        return torch.clamp_min(x, 0, out=self.ring[self.at % 40])
