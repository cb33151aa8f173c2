"""A task that draws: dropout in training mode."""

import torch
from torch import nn


class Model(nn.Module):
    """softmax(dropout(linear(x)))."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.dropout(self.linear(x)), dim=1)


BATCH, INPUTS, OUTPUTS = 128, 256, 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, INPUTS)]


def get_init_inputs() -> list[object]:
    return [INPUTS, OUTPUTS]
