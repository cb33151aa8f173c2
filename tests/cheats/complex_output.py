"""Returns a complex tensor whose real part is the answer.

Own invention: a comparison that takes real parts, or a cast with a mere warning, accepts it.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "dtype"


class ModelNew(nn.Module):
    """complex64."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.complex(torch.relu(x), torch.zeros_like(x))
