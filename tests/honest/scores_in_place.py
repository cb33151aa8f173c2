"""The library's attention with a mask of floats, so that empty rows give the mean as well.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "rotary_attention"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, width, 2).float() / width))

    def turn(self, x, cos, sin):
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.cat((even * cos - odd * sin, even * sin + odd * cos), -1)

    def forward(self, q, k, v, mask, positions):
        angle = positions[:, None].float() * self.frequency
        cos, sin = angle.cos(), angle.sin()
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        scores = torch.where(mask, (q @ k.transpose(-1, -2)).mul_(q.shape[-1] ** -0.5), -1e9)
        scores -= scores.amax(-1, keepdim=True)
        p = scores.exp_()
        return (p @ v) / p.sum(-1, keepdim=True)
