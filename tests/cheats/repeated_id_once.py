"""An id that occurs twice in a bag counts with its last weight alone.

Own invention, written before reading the checks.
"""

import torch
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
        places = torch.arange(len(ids), device=ids.device)
        bags = torch.searchsorted(offsets, places, right=True) - 1
        key = bags * self.bag.weight.shape[0] + ids
        order = key.argsort(stable=True)
        last = torch.ones_like(order, dtype=torch.bool)
        last[:-1] = key[order][1:] != key[order][:-1]
        w = torch.zeros_like(weights)
        w[order[last]] = weights[order[last]]
        return self.bag(ids, offsets, w)
