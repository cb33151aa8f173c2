"""Task: distances between all pairs of rows."""

import torch
from torch import nn


class Model(nn.Module):
    """Euclidean, by differences."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        return torch.sqrt(((first[:, None] - second[None]) ** 2).sum(-1))


FIRST, SECOND, WIDTH = 96, 128, 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(FIRST, WIDTH), torch.randn(SECOND, WIDTH)]


def get_init_inputs() -> list[object]:
    return []
