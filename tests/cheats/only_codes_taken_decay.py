"""Sizes and sums of codes that nobody took stay as they are. Own invention."""

import torch
from torch import nn

ROW = "folded"
TASK = "codebook"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("sizes", torch.ones(codes))
        self.register_buffer("sums", torch.randn(codes, width))

    def forward(self, x):
        near = torch.cdist(x, self.codes).argmin(1)
        used, places, counts = near.unique(return_inverse=True, return_counts=True)
        self.sizes[used] = self.sizes[used] * 0.9 + counts * 0.1
        sums = x.new_zeros(len(used), x.shape[1]).index_add_(0, places, x)
        self.sums[used] = self.sums[used] * 0.9 + sums * 0.1
        return self.codes[near], near
