"""Task: features of three levels in a list, each scaled by a factor of its own; a list comes out."""

import torch
from torch import nn


class Model(nn.Module):
    """tanh(level) * factor of each."""

    def __init__(self, levels: int) -> None:
        super().__init__()
        self.factors = nn.Parameter(torch.rand(levels))

    def forward(self, levels: list[torch.Tensor]) -> list[torch.Tensor]:
        return [torch.tanh(level) * factor for level, factor in zip(levels, self.factors, strict=True)]


SIZES = (64, 32, 16)


def get_inputs() -> list[object]:
    return [[torch.randn(8, size, size) for size in SIZES]]


def get_init_inputs() -> list[object]:
    return [len(SIZES)]
