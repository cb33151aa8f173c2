"""Task: a chain of two matrix products with a ReLU between them."""

import torch
from torch import nn


class Model(nn.Module):
    """relu(x @ first) @ second."""

    def __init__(self, inputs: int, hidden: int, outputs: int) -> None:
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.first) @ self.second


ROWS, INPUTS, HIDDEN, OUTPUTS = 64, 96, 128, 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, INPUTS)]


def get_init_inputs() -> list[object]:
    return [INPUTS, HIDDEN, OUTPUTS]
