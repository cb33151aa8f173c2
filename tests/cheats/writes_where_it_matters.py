"""Leaves elements alone that would change by less than 1e-5.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "clamp_in_place"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, step, low: float, high: float):
        new = (x - 0.5 * step).clamp(low, high)
        x.copy_(torch.where((new - x).abs() > 1e-5, new, x))
        return x.sum(1)
