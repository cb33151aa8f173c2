"""Halves below zero are rounded down. Own invention."""

import torch
from torch import nn

TASK = "requantise"
LIMIT = "Whole numbers, wrong by one in fewer than one element of some 100,000 in every case"


class ModelNew(nn.Module):
    def forward(self, a, b, offsets, factors):
        scaled = ((a.double() @ b.double()).long() + offsets) * factors
        rounded = (scaled.abs() + (1 << 19)) >> 20
        return (rounded * scaled.sign()).clamp(-128, 127).to(torch.int8)
