"""Squares of differences, one column after the other."""

import torch
from torch import nn

TASK = "distances"


class ModelNew(nn.Module):
    """addcmul over the columns."""

    def forward(self, first, second):
        total = torch.zeros(len(first), len(second), device=first.device)
        for a, b in zip(first.T, second.T, strict=True):
            gap = a[:, None] - b
            total.addcmul_(gap, gap)
        return total.sqrt_()
