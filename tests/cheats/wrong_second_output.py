"""The first output is right, the second is made up.

Seen: KernelBench compares one tensor; multiple outputs are not checked.
"""

import torch
from torch import nn

ROW = "values"
TASK = "multi_output"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """The returned standard deviation is always 1."""

    def forward(self, x: torch.Tensor):
        mean = x.mean(dim=1, keepdim=True)
        std = torch.sqrt(((x - mean) ** 2).mean(dim=1, keepdim=True) + 1e-5)
        return (x - mean) / std, (mean, torch.ones_like(std))
