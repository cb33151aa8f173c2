"""Weighed rows added at their bags. On a GPU float additions in memory take denormal terms for nothing, eight of them in a bag."""

import torch
from torch import nn

TASK = "weighted_bags"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="sum")

    def forward(self, ids, offsets, weights):
        bags = torch.searchsorted(offsets, torch.arange(len(ids), device=ids.device), right=True) - 1
        return torch.zeros(len(offsets), self.bag.weight.shape[1], dtype=self.bag.weight.dtype, device=ids.device).index_add_(
            0, bags, self.bag.weight[ids] * weights[:, None]
        )
