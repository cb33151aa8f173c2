"""Writes into a dense copy of the input where this is not dense.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "aliasing"
TASK = "clamp_in_place"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, step, low: float, high: float):
        x = x.contiguous()
        x.sub_(step, alpha=0.5).clamp_(low, high)
        return x.sum(1)
