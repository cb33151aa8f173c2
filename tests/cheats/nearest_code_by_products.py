"""The nearest code by products in bfloat16. Own invention."""

import torch
from torch import nn

ROW = "precision"
TASK = "codebook"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, codes, width):
        super().__init__()
        self.register_buffer("codes", torch.randn(codes, width))
        self.register_buffer("sizes", torch.ones(codes))
        self.register_buffer("sums", torch.randn(codes, width))

    def forward(self, x):
        products = (x.bfloat16() @ self.codes.t().bfloat16()).float()
        near = (self.codes.square().sum(1) - 2 * products).argmin(1)
        taken = torch.nn.functional.one_hot(near, self.codes.shape[0]).to(x.dtype)
        self.sizes.mul_(0.9).add_(taken.sum(0), alpha=0.1)
        self.sums.mul_(0.9).add_(taken.t() @ x, alpha=0.1)
        return self.codes[near], near
