"""Reads one buffer and raises the other, in one fused expression otherwise."""

import torch
from torch import nn

TASK = "buffers"


class ModelNew(nn.Module):
    """tanh_ on an own temporary."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("centre", torch.zeros(width))
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return (x - self.centre).mul_(self.gain).tanh_()
