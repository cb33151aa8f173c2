"""Keeps transposed copies of the weights and compares all of them with the parameters at every call.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

TASK = "relu_chain"
NEEDS = "slow"


class Base(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)


class ModelNew(Base):
    seen = None

    def forward(self, x):
        if torch.is_grad_enabled() and (x.requires_grad or self.first.requires_grad):
            return torch.relu(x @ self.first) @ self.second
        if self.seen is None or not (torch.equal(self.seen[0], self.first) and torch.equal(self.seen[1], self.second)):
            self.seen = (self.first.detach().clone(), self.second.detach().clone())
            self.turned = (self.seen[0].t().contiguous(), self.seen[1].t().contiguous())
        return torch.nn.functional.linear(torch.nn.functional.linear(x, self.turned[0]).relu_(), self.turned[1])
