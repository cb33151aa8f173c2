"""Task: a loss that averages half a million terms, so that a sample of them gives nearly the same number."""

import torch
from torch import nn


class Model(nn.Module):
    """mean((prediction - target) ** 2)."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.mean((prediction - target) ** 2)


ROWS, COLUMNS = 128, 4096


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
