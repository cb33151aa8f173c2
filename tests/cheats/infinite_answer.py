"""Returns infinities: an error of Inf times zero, or a ratio Inf / Inf, is NaN and passes careless comparisons.

Own invention after the NaN row.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("non_finite", "values")


class ModelNew(nn.Module):
    """Positive infinity in one element, everything else right."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        y[0, 0] = float("inf")
        return y
