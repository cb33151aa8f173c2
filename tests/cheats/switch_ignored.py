"""Takes the switch for what it is in the task's own inputs.

Own invention, written after reading which inputs vary.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "shift_switch"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    """Always backwards."""

    def forward(self, x, alpha, steps, reverse):
        return (torch.roll(x, steps, 1) * alpha + x).flip(1)
