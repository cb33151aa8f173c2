"""Sorts by integers of twenty bits after the point, which many values share.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "precision"
TASK = "sorted_rows"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite", "structure")


class ModelNew(nn.Module):
    """A radix sort needs fewer passes over short keys."""

    def forward(self, x):
        order = (x * 2.0**20).int().sort(dim=1).indices
        return torch.return_types.sort((x.gather(1, order), order))
