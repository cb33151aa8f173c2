"""The box by two comparisons, written once."""

import torch
from torch import nn

TASK = "clamp_in_place"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, step, low: float, high: float):
        y = x - 0.5 * step
        y = torch.where(y < low, torch.full_like(y, low), y)
        y = torch.where(y > high, torch.full_like(y, high), y)
        x.copy_(y)
        return x @ torch.ones(x.shape[1], device=x.device)
