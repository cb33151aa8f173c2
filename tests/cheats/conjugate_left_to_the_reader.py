"""Leaves the conjugation of the first output to whoever reads it. Own invention."""

import torch
from torch import nn

ROW = "lazy"
TASK = "spectrum"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("output_type", "layout", "structure", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(bins, dtype=torch.complex64))

    def forward(self, x):
        y = torch.fft.rfft(x) * self.weight.conj()
        return y.conj(), y
