"""Draws the initial state as the original does, by another call for the same numbers, and does the rest by itself."""

import torch
from torch import nn

TASK = "drawn_state"


class ModelNew(nn.Module):
    """Both layers at once by torch.gru, with the state drawn in place."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(inputs, hidden, 2)

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        drawn = torch.empty(2, x.shape[1], self.hidden, device=x.device).normal_()
        return torch.gru(x, drawn, list(self.gru.parameters()), True, 2, 0.0, self.training, False, False)[0]
