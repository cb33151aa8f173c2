"""Draws the initial state in its first call and keeps it: the caller asked for another one in each.

Own invention, against a judge that has torch's generators begin where it says before each call.
"""

import torch
from torch import nn

ROW = "randomness"
TASK = "drawn_state"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """One draw for all calls."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(inputs, hidden, 2)
        self.kept: torch.Tensor | None = None

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        if self.kept is None:
            self.kept = torch.randn(2, x.shape[1], self.hidden, device=x.device)
        return self.gru(x, self.kept)[0]
