"""The factor of the first call with these steps is kept for later ones.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "shift_switch"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.factors = {}

    def forward(self, x, alpha, steps, reverse):
        alpha = self.factors.setdefault((steps, reverse), alpha)
        y = torch.roll(x, steps, 1) * alpha + x
        return y.flip(1) if reverse else y
