"""Takes the number of steps to be 3, as it is in the file.

Own invention, written against the checks as they stood.
"""

from torch import nn

ROW = "hard_coding"
TASK = "scalar_inputs"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """A constant for a number that is an input."""

    def forward(self, x, alpha, steps, beta):
        return alpha * x.roll(3, 0) + beta
