"""Each output lies in anonymous memory that the program has mapped itself."""

import mmap

import torch
from torch import nn

TASK = "relu"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    """torch.frombuffer over mmap."""

    def forward(self, x):
        out = torch.frombuffer(mmap.mmap(-1, x.nbytes), dtype=x.dtype).view(x.shape)
        return torch.clamp_min(x, 0, out=out)
