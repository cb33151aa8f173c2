"""Halves below zero are rounded down. Own invention."""

import torch
from torch import nn

ROW = "ties"
TASK = "requantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, a, b, offsets, factors):
        scaled = ((a.double() @ b.double()).long() + offsets) * factors
        rounded = (scaled.abs() + (1 << 19)) >> 20
        return (rounded * scaled.sign()).clamp(-128, 127).to(torch.int8)
