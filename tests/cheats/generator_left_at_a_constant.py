"""Draws as the original does, and leaves torch's generator at a constant: all calls that follow draw the same.

Own invention, of a twelfth red team that had read the judge as it was.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "drawn_state"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"


class ModelNew(nn.Module):
    """Right in each call by itself."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(inputs, hidden, 2)

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        drawn = torch.randn(2, x.shape[1], self.hidden, device=x.device)
        torch.manual_seed(0)
        return self.gru(x, drawn)[0]
