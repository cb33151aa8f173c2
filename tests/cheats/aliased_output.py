"""Returns its (legitimately updated) input instead of a fresh tensor: the caller's result and the caller's state are one memory.

Own invention: the mutation is right, the aliasing is not.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "inplace_original"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "aliasing"


class ModelNew(nn.Module):
    """The state is kept only long enough to be overwritten; the difference to the original is restored by a copy."""

    def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        state.mul_(0.9).add_(x)
        return torch.tanh_(state.view(state.shape))
