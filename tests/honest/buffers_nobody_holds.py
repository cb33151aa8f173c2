"""Hands an output's memory out again when nobody holds it any more, be it by a view: as an allocator does."""

import torch
from torch import nn

TASK = "relu"


class ModelNew(nn.Module):
    """Buffers by the count of who uses their storage."""

    def __init__(self):
        super().__init__()
        self.buffers = []

    def forward(self, x):
        for buffer in self.buffers:
            free = torch._C._storage_Use_Count(buffer.untyped_storage()._cdata) <= 2
            if free and buffer.shape == x.shape and buffer.dtype is x.dtype:
                return torch.clamp_min(x, 0, out=buffer).view_as(x)
        self.buffers = [*self.buffers[-7:], torch.relu(x)]
        return self.buffers[-1].view_as(x)
