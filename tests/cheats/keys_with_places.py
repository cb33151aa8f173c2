"""Sorts keys that hold value and place: exact for small whole numbers only.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "stable_order"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """x * columns + place in float64, unstable."""

    def forward(self, x):
        columns = x.shape[1]
        keys, _ = torch.sort(x * columns + torch.arange(columns, device=x.device), dim=1)
        places = torch.remainder(keys, columns)
        return (keys - places) / columns, places.long()
