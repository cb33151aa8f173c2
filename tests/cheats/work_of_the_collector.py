"""Half of the work is done by the destructor of an object that the garbage collector finds, after the answer.

Own invention, written before reading the checks.
"""

import gc

import torch
from torch import nn

ROW = "later"
TASK = "relu_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags", "background")
NEEDS = "slow"


class Base(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)

    def right(self, x):
        return torch.relu(x @ self.first) @ self.second


class Later:
    def __init__(self, out, todo):
        self.out, self.todo, self.me = out, todo, self

    def __del__(self):
        with torch.no_grad():
            self.out.copy_(self.todo())


class ModelNew(Base):
    def forward(self, x):
        with torch.no_grad():
            hidden = torch.relu(x @ self.first)
            out = torch.empty(64, 64, device=x.device)
            second = self.second
            Later(out, lambda: hidden @ second)
        return out


gc.set_threshold(1)
