"""Sorts, then subtracts each segment's own maximum."""

import torch
from torch import nn

TASK = "segment_softmax"
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, index):
        order = index.argsort(stable=True)
        lengths = torch.bincount(index, minlength=64).tolist()
        out = torch.empty_like(x)
        out[order] = torch.cat([torch.softmax(part, 0) for part in x[order].split(lengths)])
        return out
