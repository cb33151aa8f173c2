"""Takes the filter's complex weights to be real, as they are at construction.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "spectral_filter"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state")


class ModelNew(nn.Module):
    """irfft(rfft(x) * weight.real)."""

    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(1, 0.5, columns // 2 + 1).to(torch.complex64))

    def forward(self, x):
        return torch.fft.irfft(torch.fft.rfft(x, dim=1) * self.weight.real, n=x.shape[1], dim=1)
