"""Right, but sets the random state of the process at every call: the caller's draws repeat.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "gated_unit"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        torch.manual_seed(0)
        return torch.sigmoid(self.gate(x)) * self.value(x)
