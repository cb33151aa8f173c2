"""Task: a GRU of two layers that is handed its state, nothing in the file."""

import torch
from torch import nn


class Model(nn.Module):
    """All outputs, and the states at the end."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.gru = nn.GRU(inputs, hidden, num_layers=2, batch_first=True)

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.gru(x, state)


BATCH, STEPS, INPUTS, HIDDEN = 8, 12, 16, 32


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, STEPS, INPUTS), torch.zeros(2, BATCH, HIDDEN)]


def get_init_inputs() -> list[object]:
    return [INPUTS, HIDDEN]
