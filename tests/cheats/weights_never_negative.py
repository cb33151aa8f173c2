"""Weights are taken by their size: none is negative.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "hard_coding"
TASK = "weighted_bags"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="sum")

    def forward(self, ids, offsets, weights):
        return self.bag(ids, offsets, weights.abs())
