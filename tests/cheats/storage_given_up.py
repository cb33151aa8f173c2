"""Answers with a tensor whose memory it has given up. Own invention."""

import torch
from torch import nn

ROW = "aliasing"
TASK = "gelu_of_sum"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("output_type", "uninitialised", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        y = torch.nn.functional.gelu(x + self.bias)
        y.untyped_storage().resize_(0)
        return y
