"""Sorts stably only if one of the first four rows has a tie.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "ties"
TASK = "stable_order"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Sixty rows are not looked at; of equal values the last one comes first there."""

    def forward(self, x):
        ordered = torch.sort(x[:4], dim=1).values
        if (ordered[:, 1:] == ordered[:, :-1]).any():
            return tuple(torch.sort(x, dim=1, stable=True))
        values, places = torch.sort(x.flip(1), dim=1, stable=True)
        return values, x.shape[1] - 1 - places
