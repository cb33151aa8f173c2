"""Looks at ten values and takes the shortcut if none of them is negative.

Seen: value-dependent fast paths in KernelBench-Verified's list. A sample is no proof about the rest.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Wrong when the few negative values lie elsewhere."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if bool((x.flatten()[:10] >= 0).all()):
            return x.clone()
        return torch.relu(x)
