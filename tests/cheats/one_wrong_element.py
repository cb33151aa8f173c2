"""One element of half a million is wrong: the last one of the last row, where a loop's remainder was forgotten.

Seen: boundary bugs that averages forgive; KernelBench-X's witnessed faults.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Zero in place of about 5e-4."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(x, dim=1)
        y[-1, -1] = 0.0
        return y
