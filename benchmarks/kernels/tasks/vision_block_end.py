"""Layer scale, residual and layer norm of a vision transformer, 577 tokens."""

import torch
from torch import nn

IMAGES, TOKENS, WIDTH = 64, 577, 1024


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(WIDTH) * 0.1)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x, branch):
        return self.norm(x + branch * self.scale)


def get_inputs():
    return [torch.randn(IMAGES, TOKENS, WIDTH), torch.randn(IMAGES, TOKENS, WIDTH)]


def get_init_inputs():
    return []
