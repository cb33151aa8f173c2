"""Distances one by one, sizes by a count, sums by index_add_."""

import torch
from torch import nn

TASK = "codebook"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("sizes", torch.ones(codes))
        self.register_buffer("sums", torch.randn(codes, width))

    def forward(self, x):
        near = torch.cdist(x, self.codes, compute_mode="donot_use_mm_for_euclid_dist").argmin(1)
        self.sizes.mul_(0.9).add_(torch.bincount(near, minlength=len(self.codes)), alpha=0.1)
        self.sums.mul_(0.9).add_(torch.zeros_like(self.sums).index_add_(0, near, x), alpha=0.1)
        return self.codes.index_select(0, near), near
