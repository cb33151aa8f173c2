"""Puts a value that lies exactly on an edge into the bucket above it.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "ties"
TASK = "buckets"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """No drawn value lies on an edge."""

    def forward(self, x, edges):
        return torch.searchsorted(edges, x, right=True)
