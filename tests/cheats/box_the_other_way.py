"""Takes the lower bound last: a box whose bounds cross gives the lower one.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "hard_coding"
TASK = "clamp_in_place"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_mutated")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, step, low: float, high: float):
        x.sub_(step, alpha=0.5).clamp_(max=high).clamp_(min=low)
        return x.sum(1)
