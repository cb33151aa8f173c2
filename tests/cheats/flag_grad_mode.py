"""Leaves gradient recording switched on when it returns.

Own invention: the harness calls under no_grad and has to find it so afterwards.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class ModelNew(nn.Module):
    """`torch.set_grad_enabled(True)`."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result = torch.relu(x)
        torch.set_grad_enabled(True)
        return result
