"""Whole numbers in float64, exact as far as they reach."""

import torch
from torch import nn

TASK = "requantise"


class ModelNew(nn.Module):
    def forward(self, a, b, offsets, factors):
        total = torch.addmm(offsets.double(), a.double(), b.double())
        return torch.floor((total * factors.double() + (1 << 19)) / (1 << 20)).clamp(-128, 127).to(torch.int8)
