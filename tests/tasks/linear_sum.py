"""Task: a linear layer whose outputs are summed: it collapses to one product with the column sums of the weight."""

import torch
from torch import nn


class Model(nn.Module):
    """sum_j linear(x)_j * scale / 2."""

    def __init__(self, inputs: int, hidden: int, scale: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(hidden, inputs))
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sum(torch.matmul(x, self.weight.T) / 2, dim=1, keepdim=True) * self.scale


BATCH, INPUTS, HIDDEN = 128, 256, 512


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, INPUTS)]


def get_init_inputs() -> list[object]:
    return [INPUTS, HIDDEN, 1.5]
