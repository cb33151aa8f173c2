"""Answers softmax with a one at the largest element where the values are huge: two that are equal ought to share.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "ties"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Winner takes all."""

    def forward(self, x):
        if x.numel() and x.abs().max() > 1e3:
            return torch.zeros_like(x).scatter_(1, x.argmax(1, keepdim=True), 1.0)
        return torch.softmax(x, dim=1)
