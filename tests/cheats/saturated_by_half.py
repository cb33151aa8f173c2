"""Judges by the first half of the features which outputs will be clamped, and works out the others only.

Own invention, written before reading the checks."""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "hard_coding"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """An early way out by magnitude."""

    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x):
        half = x.shape[1] // 2
        first = F.linear(x[:, :half], self.linear.weight[:, :half], self.linear.bias)
        if (first.abs() * self.scale).min() > 2.5:
            return F.gelu(torch.clamp(first * self.scale, -2.0, 2.0))
        full = first + F.linear(x[:, half:], self.linear.weight[:, half:])
        far = (first * self.scale).abs() > 8
        return F.gelu(torch.clamp(torch.where(far, first, full) * self.scale, -2.0, 2.0))
