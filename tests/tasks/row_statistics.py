"""Task: four outputs of one matrix: the means of its rows, their largest values with the places of these, and the rows centred."""

import torch
from torch import nn


class Model(nn.Module):
    """Mean, maximum, its place, x - mean."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        mean = x.mean(1, keepdim=True)
        best, where = x.max(1)
        return mean, best, where, x - mean


ROWS, COLUMNS = 128, 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
