"""Takes a factor to be positive, as all of the file's are.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "hard_coding"
TASK = "scalar_inputs"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")


class ModelNew(nn.Module):
    """abs() of it, folded into a table."""

    def forward(self, x, alpha, steps, beta):
        return abs(alpha) * x.roll(steps, 0) + beta
