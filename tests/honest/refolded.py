"""Two layers folded into one, and folded again whenever a value of theirs has changed."""

import torch
from torch import nn

TASK = "two_layers"


class ModelNew(nn.Module):
    """Compares every element."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        self.seen = []

    def forward(self, x):
        now = [parameter.detach() for parameter in self.parameters()]
        if not self.seen or not all(torch.equal(old, new) for old, new in zip(self.seen, now, strict=True)):
            self.seen = [tensor.clone() for tensor in now]
            self.weight = self.second.weight @ self.first.weight
            self.bias = self.second.bias + self.second.weight @ self.first.bias
        return torch.addmm(self.bias, x, self.weight.t())
