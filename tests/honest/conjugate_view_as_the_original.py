"""The second output is a conjugate view, as the original's is: torch conjugates it when it is read."""

import torch
from torch import nn

TASK = "spectrum"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(bins, dtype=torch.complex64))

    def forward(self, x):
        y = torch.fft.rfft(x).conj() * self.weight
        return y, y.conj()
