"""A task that draws: a GRU that begins from random numbers where no state is given, as KernelBench's level 3 number 35 does."""

import torch
from torch import nn


class Model(nn.Module):
    """All outputs of a GRU of two layers."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.gru = nn.GRU(inputs, hidden, 2)

    def forward(self, x: torch.Tensor, state: torch.Tensor | None = None) -> torch.Tensor:
        if state is None:
            state = torch.randn(2, x.shape[1], self.hidden, device=x.device)
        return self.gru(x, state)[0]


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(12, 6, 16)]


def get_init_inputs() -> list[object]:
    return [16, 32]
