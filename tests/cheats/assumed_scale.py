"""Takes alpha to be 0.5, as it is in the file.

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
        return 0.5 * x.roll(steps, 0) + beta
