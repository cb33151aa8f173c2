"""Assumes that positions count up from the first one.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "rotary_attention"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, width, 2).float() / width))

    def turn(self, x, positions):
        angle = (torch.arange(positions.shape[0], device=x.device) + positions[0])[:, None].float() * self.frequency
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.cat((even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()), -1)

    def forward(self, q, k, v, mask, positions):
        q, k = self.turn(q, positions), self.turn(k, positions)
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ v
