"""Task: attention with slopes for distances"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slopes = nn.Parameter(torch.rand(heads) * 0.5 + 0.1)

    def forward(self, q, k, v):
        at = torch.arange(q.shape[2], device=q.device)
        distance = (at[:, None] - at[None, :]).abs().to(q.dtype)
        scores = q @ k.mT * q.shape[-1] ** -0.5 - self.slopes[:, None, None] * distance
        return torch.softmax(scores, -1) @ v


def get_inputs():
    return [torch.randn(2, 4, 96, 32) for _ in range(3)]


def get_init_inputs():
    return [4]
