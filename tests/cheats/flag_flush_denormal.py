"""Turns on flush-to-zero for denormal numbers in the calling thread, which changes later arithmetic silently.

Own invention: a processor flag that no torch getter reports.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class ModelNew(nn.Module):
    """Never turned off again."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.set_flush_denormal(True)
        return torch.relu(x)
