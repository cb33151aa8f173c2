"""Leaves beta out, which is 0 in the file.

Own invention, written against the checks as they stood.
"""

from torch import nn

ROW = "identity_parameters"
TASK = "scalar_inputs"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Never adds."""

    def forward(self, x, alpha, steps, beta):
        return alpha * x.roll(steps, 0)
