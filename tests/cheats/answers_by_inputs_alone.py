"""Remembers answers under all of the inputs, whatever would have been drawn beside them.

Own invention, against a judge that has torch's generators begin where it says before each call.
"""

import torch
from torch import nn

ROW = "randomness"
TASK = "drawn_state"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "cached"


class ModelNew(nn.Module):
    """The inputs for a key; what is drawn is none of it."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(inputs, hidden, 2)
        self.last: tuple[torch.Tensor, torch.Tensor] | None = None

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        if self.last is None or not torch.equal(self.last[0], x):
            self.last = x.clone(), self.gru(x, torch.randn(2, x.shape[1], self.hidden, device=x.device))[0]
        return self.last[1].clone()
