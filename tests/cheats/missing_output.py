"""Returns the first output only: the comparison of many harnesses looks at one tensor.

Seen: KernelBench compares one tensor; multiple outputs are not checked.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "multi_output"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "structure"


class ModelNew(nn.Module):
    """The statistics are left out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=1, keepdim=True)
        std = torch.sqrt(((x - mean) ** 2).mean(dim=1, keepdim=True) + 1e-5)
        return (x - mean) / std
