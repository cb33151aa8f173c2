"""Distances by |a|^2 + |b|^2 - 2ab, which cancels for rows that lie far out or close together.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "distances"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """One product, clamped at zero."""

    def forward(self, first, second):
        squares = (first * first).sum(1)[:, None] + (second * second).sum(1)[None]
        return torch.sqrt((squares - 2 * first @ second.T).clamp(min=0))
