"""A softmax by powers of two."""

import torch
from torch import nn

TASK = "softmax"


class ModelNew(nn.Module):
    """exp2 is an instruction."""

    def forward(self, x):
        e = torch.exp2((x - x.amax(1, keepdim=True)) * 1.4426950408889634)
        return e * torch.reciprocal(e.sum(1, keepdim=True))
