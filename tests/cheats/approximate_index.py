"""Searches every second column only: the value found is nearly as large, the index is another.

Seen: index outputs compared with a tolerance meant for values.
"""

import torch
from torch import nn

ROW = "ties"
TASK = "argmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Half of the bytes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.argmax(x[:, ::2], dim=1) * 2
