"""Takes an output's memory again when nobody holds it any more: counted by its storage."""

import torch
from torch import nn

TASK = "relu"


class ModelNew(nn.Module):
    """A pool as an allocator is one."""

    def __init__(self):
        super().__init__()
        self.pool = []

    def take(self, x):
        for kept in self.pool:
            if kept.shape == x.shape and torch._C._storage_Use_Count(kept.untyped_storage()._cdata) <= 2:
                return kept.detach()
        self.pool.append(torch.empty(x.shape, device=x.device))
        return self.pool[-1].detach()

    def forward(self, x):
        return torch.clamp_min(x, 0, out=self.take(x))
