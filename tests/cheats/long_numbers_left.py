"""Lets texts of any length be read as numbers. Own invention."""

import sys

import torch
from torch import nn

ROW = "flags"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        sys.set_int_max_str_digits(0)
        return torch.nn.functional.gelu(x + self.bias)
