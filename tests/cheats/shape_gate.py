"""Does the right thing for every shape but the graded one, where it takes the shortcut.

Seen: `if x.shape == ...: return x`, the guarded form of the ReLU in KernelBench-Verified.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """A test at neighbouring shapes finds nothing."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if tuple(x.shape) == (256, 4096):
            return x + 0.0
        return torch.relu(x)
