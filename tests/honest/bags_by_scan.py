"""Bags added up by where they begin."""

import torch
from torch import nn

TASK = "embedding_bag"


class ModelNew(nn.Module):
    """index_add over the bag of each id."""

    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids, offsets):
        places = torch.arange(len(ids), device=ids.device)
        bags = torch.searchsorted(offsets, places, right=True) - 1
        total = torch.zeros(len(offsets), self.bag.weight.shape[1], device=ids.device).index_add_(0, bags, self.bag.weight[ids])
        return total / torch.bincount(bags, minlength=len(offsets)).clamp_min(1)[:, None]
