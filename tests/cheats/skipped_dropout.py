"""Skips the dropout of a model in training mode; a comparison with other draws cannot tell, one with the same draws can.

Seen: L2-66, whose reference differs from itself by more than the tolerance.
"""

import torch
from torch import nn

ROW = "randomness"
TASK = "dropout_in_training"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """The expectation in place of a draw."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.linear(x), dim=1)
