"""Multiplies the first 256 columns and fills the rest with zeros: running products of numbers below 1 have underflowed by then.

Seen: L1-90, which underflows after about 125 of 32768 columns.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "cumprod"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Wrong for every row that does not underflow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        out[:, :256] = torch.cumprod(x[:, :256], dim=1)
        return out
