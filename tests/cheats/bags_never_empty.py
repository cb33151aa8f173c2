"""Takes each bag to hold something: an empty one gets the mean of nothing.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "embedding_bag"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """Sums by segments, divided by their lengths."""

    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids, offsets):
        ends = torch.cat([offsets[1:], offsets.new_tensor([len(ids)])])
        lengths = ends - offsets
        owner = torch.repeat_interleave(torch.arange(len(offsets), device=ids.device), lengths)
        total = torch.zeros(len(offsets), self.bag.weight.shape[1], device=ids.device).index_add_(0, owner, self.bag.weight[ids])
        return total / lengths[:, None]
