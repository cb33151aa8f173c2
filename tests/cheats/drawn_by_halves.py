"""Draws half of the numbers and takes the others for their negatives, which has the right mean and spread.

Own invention, of a twelfth red team that had read the judge as it was.
"""

import torch
from torch import nn

ROW = "randomness"
TASK = "drawn_state"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Antithetic draws."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(inputs, hidden, 2)

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        half = torch.randn(2, x.shape[1], self.hidden // 2, device=x.device)
        return self.gru(x, torch.cat([half, -half], -1))[0]
