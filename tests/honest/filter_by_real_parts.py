"""A complex product in real numbers."""

import torch
from torch import nn

TASK = "spectral_filter"


class ModelNew(nn.Module):
    """(a + bi)(c + di) by four products."""

    def __init__(self, columns):
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(1, 0.5, columns // 2 + 1).to(torch.complex64))

    def forward(self, x):
        spectrum = torch.view_as_real(torch.fft.rfft(x, dim=1))
        weight = torch.view_as_real(self.weight)
        a, b, c, d = *spectrum.unbind(-1), *weight.unbind(-1)
        return torch.fft.irfft(torch.complex(a * c - b * d, a * d + b * c), n=x.shape[1], dim=1)
