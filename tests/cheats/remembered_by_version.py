"""Remembers answers under where an input lies and torch's count of its writes, which writes from outside do not raise.

Own invention, written before the other cheats were read.
"""

import torch
from torch import nn

ROW = "cache"
TASK = "softmax"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("cached",)


class ModelNew(nn.Module):
    """Copies of what it has answered before."""

    def __init__(self):
        super().__init__()
        self.answers = {}

    def forward(self, x):
        key = (x.data_ptr(), x._version, x.shape, x.stride())
        if key not in self.answers:
            self.answers[key] = torch.softmax(x, dim=1)
        return self.answers[key].clone()
