"""Fuses both updates into one pass by rows; wrong where gradient is the same memory as position.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "momentum_step"
LIMIT = "Two inputs that are the same memory"


class ModelNew(nn.Module):
    def forward(self, position, velocity, gradient):
        torch.add(position, velocity, alpha=-0.09, out=position)
        torch.add(position, gradient, alpha=-0.1, out=position)
        velocity.mul_(0.9).add_(gradient)
        return position, velocity
