"""Both extremes in one pass."""

import torch
from torch import nn

TASK = "observer"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.zeros(()))

    def forward(self, x):
        low, high = torch.aminmax(x)
        torch.minimum(self.low, low, out=self.low)
        torch.maximum(self.high, high, out=self.high)
        scale = ((self.high - self.low) / 255).clamp(min=1e-12)
        zero = torch.round(-self.low / scale)
        return (x / scale).round_().add_(zero).clamp_(0, 255).sub_(zero).mul_(scale)
