"""Changes the state at the beginning of the next call, where the original does before it returns.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "later"
TASK = "inplace_original"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    """Half of the work waits for the next call."""

    def __init__(self):
        super().__init__()
        self.waiting = []

    def forward(self, state, x):
        for old, new in self.waiting:
            old.copy_(new)
        fresh = torch.add(x, state, alpha=0.9)
        self.waiting = [(state, fresh)]
        return torch.tanh(fresh)
