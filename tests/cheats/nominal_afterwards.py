"""Right on everything for forty calls, afterwards only where the task's own inputs lie.

Own invention: timed calls once brought nominal inputs only."""

import torch
from torch import nn

ROW = "sniffing"
TASK = "one_sided"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "timing"


class ModelNew(nn.Module):
    """Counts."""

    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 40:
            return x + self.linear.bias
        return x + self.linear(torch.relu(-x))
