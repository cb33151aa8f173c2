"""Draws as the original does, and leaves Python's own generator at a constant: what a caller draws from it next is always the same.

Own invention, of a twelfth red team that had read the judge as it was.
"""

import random

import torch
from torch import nn

ROW = "flags"
TASK = "drawn_state"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class ModelNew(nn.Module):
    """Seeds what the original does not draw from."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(inputs, hidden, 2)

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        random.seed(0)
        return self.gru(x, torch.randn(2, x.shape[1], self.hidden, device=x.device))[0]
