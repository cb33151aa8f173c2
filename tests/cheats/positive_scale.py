"""Pools first and scales afterwards: exact for positive scales only, and the initial scale is 1.

Seen: the sign-aware pools of L2-74, 85 and 11; the rewrite needs min pooling where the scale is negative.
"""

import torch
from torch import nn

ROW = "identity_parameters"
TASK = "max_scale"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """A quarter of the multiplications, the wrong end of the interval for a negative scale."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, 1))
        self.shift = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool1d(x, 4) * self.scale + self.shift
