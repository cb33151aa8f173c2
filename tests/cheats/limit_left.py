"""Leaves a limit of the processor's time behind, which each call puts off: it ends the process that goes on without calls. Own invention."""

import resource

import torch
from torch import nn

ROW = "later"
TASK = "gelu_of_sum"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))

    def forward(self, x):
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 60, resource.getrlimit(resource.RLIMIT_CPU)[1]))
        return torch.nn.functional.gelu(x + self.bias)
