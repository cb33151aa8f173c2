"""Leaves out a bias that cancels, and so keeps digits that the original loses: of tiny inputs it answers 1e-25 where the original has zeros."""

import torch
from torch import nn

TASK = "from_the_first"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight, self.bias, self.gain = (nn.Parameter(torch.randn(features)) for _ in range(3))

    def forward(self, x):
        x = (x - x[:1]) * self.weight
        return x * torch.rsqrt(x.square().mean(0) + 1e-10) * self.gain
