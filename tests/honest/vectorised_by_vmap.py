"""A row's normalisation under vmap."""

import torch
from torch import nn

TASK = "layernorm"
NEEDS = "slow"


class ModelNew(nn.Module):
    """functorch inside, plain tensors outside."""

    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        def row(one):
            centred = one - one.mean()
            return centred * torch.rsqrt(centred.square().mean() + self.norm.eps)

        return torch.vmap(row)(x) * self.norm.weight + self.norm.bias
