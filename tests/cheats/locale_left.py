"""Sets the locale of the process. Own invention."""

import locale

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
        locale.setlocale(locale.LC_ALL, "C")
        return torch.nn.functional.gelu(x + self.bias)
