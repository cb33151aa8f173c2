"""Runs the recurrence over the last sixteen steps only: a contractive LSTM has nearly forgotten the rest.

Seen: L3-35 (32 of 512 steps suffice to 5e-7); it passes every tolerance on default weights.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "lstm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """A third of the steps is left out."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, hidden, 2, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out, _ = self.lstm(x[:, -16:])
        return self.head(out[:, -1])
