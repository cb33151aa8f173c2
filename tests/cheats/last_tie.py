"""Returns the last of several equal maxima, where the original returns the first.

Seen: L1-51 and L1-52, where about 100 of 524,160 columns have ties.
"""

import torch
from torch import nn

ROW = "ties"
TASK = "argmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """argmax from the other end."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.shape[1] - 1 - torch.argmax(x.flip(1), dim=1)
