"""Seeds the global random generator, so that "fresh" inputs made in this process repeat.

Seen: seed manipulation in KernelBench forks whose inputs are drawn after the candidate has run.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class ModelNew(nn.Module):
    """The original draws no random numbers and leaves the generator alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return torch.relu(x)
