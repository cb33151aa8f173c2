"""functools.lru_cache of what is made from the weights, keyed by address and version; refresh() empties it."""

import functools

import torch
from torch import nn

TASK = "two_layers"
NEEDS = "slow"


class ModelNew(nn.Module):
    """A cache with a proper key."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.folded = functools.lru_cache(maxsize=2)(self.fold)

    def fold(self, key):
        with torch.no_grad():
            weight = self.second.weight.double() @ self.first.weight.double()
            bias = self.second.bias.double() + self.second.weight.double() @ self.first.bias.double()
        return weight.t().float().contiguous(), bias.float()

    def refresh(self):
        self.folded.cache_clear()

    def forward(self, x):
        weight, bias = self.folded(tuple((p.data_ptr(), p._version) for p in self.parameters()))
        return torch.addmm(bias, x, weight)
