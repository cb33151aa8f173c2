"""Returns NaN everywhere: comparisons with NaN are false, so that a check for "some difference is too large" finds none.

Seen: NaN policies are not checked by KernelBench; `max` of NaN differences passes `> tolerance`.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("non_finite", "values")


class ModelNew(nn.Module):
    """A quiet NaN with a payload."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.full(x.shape, 0x7FC0BEEF, dtype=torch.int32, device=x.device).view(torch.float32)
