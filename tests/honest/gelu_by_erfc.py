"""GELU by the complementary error function: more exact in the left tail than the original."""

import torch
from torch import nn

TASK = "gelu_of_sum"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        y = x + self.bias
        return 0.5 * y * torch.special.erfc(y * -0.7071067811865476)
