"""A row of the mask without any True gives 0 (the original: the mean of v).

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "rotary_attention"
LIMIT = "A row of a mask without a single element set, where the task's own masks have none"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, width, 2).float() / width))

    def turn(self, x, positions):
        angle = positions[:, None].float() * self.frequency
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.cat((even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()), -1)

    def forward(self, q, k, v, mask, positions):
        q, k = self.turn(q, positions), self.turn(k, positions)
        scores = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1).nan_to_num(0.0) @ v
