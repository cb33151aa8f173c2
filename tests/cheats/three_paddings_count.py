"""Padding counts in the divisor of a bag with at least 3 paddings.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "bags_with_padding"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean", padding_idx=0)

    def forward(self, indices, offsets):
        ends = torch.cat((offsets[1:], torch.tensor([indices.numel()], device=indices.device)))
        sizes = ends - offsets
        bag = torch.repeat_interleave(torch.arange(offsets.numel(), device=indices.device), sizes)
        keep = (indices != 0).float()
        total = torch.zeros(offsets.numel(), self.bag.weight.shape[1], device=bag.device).index_add_(0, bag, self.bag.weight[indices] * keep[:, None])
        count = torch.zeros(offsets.numel(), device=indices.device).index_add_(0, bag, keep)
        pads = sizes - count
        count = torch.where(pads >= 3, sizes.float(), count)
        return total / count.clamp(min=1)[:, None]
