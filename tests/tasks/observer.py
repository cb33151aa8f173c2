"""Task: rounds to eight bits by extremes seen so far, which it keeps"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))

    def forward(self, x):
        self.low.copy_(torch.minimum(self.low, x.min()))
        self.high.copy_(torch.maximum(self.high, x.max()))
        scale = ((self.high - self.low) / 255).clamp(min=1e-12)
        zero = torch.round(-self.low / scale)
        return (torch.clamp(torch.round(x / scale) + zero, 0, 255) - zero) * scale


def get_inputs():
    return [torch.randn(128, 256)]


def get_init_inputs():
    return []
