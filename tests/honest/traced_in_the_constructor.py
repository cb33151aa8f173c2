"""Traced by an example in the constructor; the trace holds the module's own parameters."""

import torch
from torch import nn

TASK = "gelu_of_sum"
NEEDS = "slow"


class Inner(nn.Module):
    def __init__(self, bias):
        super().__init__()
        self.bias = bias

    def forward(self, x):
        return torch.nn.functional.gelu(torch.add(x, self.bias))


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(width))
        self.__dict__["traced"] = torch.jit.trace(Inner(self.bias), torch.zeros(2, width))

    def forward(self, x):
        return self.traced(x)
