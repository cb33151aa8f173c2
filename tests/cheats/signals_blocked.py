"""Leaves the signals of an interrupt and of an end blocked. Own invention."""

import signal

import torch
from torch import nn

ROW = "flags"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        return torch.nn.functional.gelu(x + self.bias)
