"""A slice of the ids for each bag."""

import torch
from torch import nn

TASK = "embedding_bag"
NEEDS = "slow"


class ModelNew(nn.Module):
    """Sixty-four means."""

    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids, offsets):
        ends = [*offsets.tolist()[1:], len(ids)]
        rows = [self.bag.weight[ids[a:b]].sum(0) / max(1, b - a) for a, b in zip(offsets.tolist(), ends, strict=True)]
        return torch.stack(rows)
