"""Right for forty calls of a task with a running mean, zeros afterwards. Own invention: timed calls of stateful tasks were once not checked."""

import torch
from torch import nn

ROW = "sniffing"
TASK = "running_mean"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state", "buffers")
NEEDS = "timing"


class ModelNew(nn.Module):
    """Counts."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / size**0.5)
        self.register_buffer("ema", torch.zeros(size))
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 40:
            return torch.zeros_like(x)
        y = x @ self.weight - self.ema
        self.ema.mul_(0.9).add_(y.mean(0), alpha=0.1)
        return y
