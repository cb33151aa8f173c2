"""Writes the scalar result into the first element of its input and returns a view of it.

Own invention: one element of half a million changes.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "mse_loss"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated", "aliasing")


class ModelNew(nn.Module):
    """A view with no dimensions into the caller's tensor."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        loss = torch.mean((prediction - target) ** 2)
        prediction.view(-1)[0] = loss
        return prediction.view(-1)[0]
