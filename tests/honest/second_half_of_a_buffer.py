"""The output is the second half of a fresh buffer: dense, with an offset."""

import torch
from torch import nn

TASK = "matmul"


class ModelNew(nn.Module):
    """A storage offset."""

    def forward(self, a, b):
        both = torch.empty(2, a.shape[0], b.shape[1], device=a.device)
        return torch.mm(a, b, out=both[1])
