"""Takes a number of steps to be positive.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "scalar_inputs"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")


class ModelNew(nn.Module):
    """Two slices."""

    def forward(self, x, alpha, steps, beta):
        steps = max(1, steps)
        return alpha * torch.cat([x[-steps:], x[:-steps]]) + beta
