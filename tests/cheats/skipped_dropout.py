"""Skips the dropout of a model in training mode; no comparison with one random draw can tell.

Seen: L2-66, whose reference differs from itself by more than the tolerance.
"""

import torch
from torch import nn

ROW = "randomness"
TASK = "degenerate_random"
EXPECT_STATUS = "unscored"
EXPECT_CHECK = "unscored"


class ModelNew(nn.Module):
    """The expectation in place of a draw."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(x), dim=1)
