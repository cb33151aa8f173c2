"""Leaves an alarm behind that ends the process a second later. Own invention."""

import signal

import torch
from torch import nn

ROW = "later"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags", "exited")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        signal.alarm(1)
        return torch.nn.functional.gelu(x + self.bias)
