"""Returns a tensor that requires grad, made under enable_grad inside the harness's no_grad.

Own invention: the original's output does not require grad under no_grad.
"""

import torch
from torch import nn

ROW = "lazy"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class ModelNew(nn.Module):
    """Values are right, the contract is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x).requires_grad_()
