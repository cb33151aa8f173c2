"""Clamps in place of subtracting the maximum: right as long as no value is beyond 60.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "underflow"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """One pass less."""

    def forward(self, x):
        e = torch.exp(torch.clamp(x, -60.0, 60.0))
        return e / e.sum(1, keepdim=True)
