"""Task: the rows whose score is above nothing, with their places: how many depends on the values."""

import torch
from torch import nn


class Model(nn.Module):
    """x[score > 0] and where."""

    def forward(self, x: torch.Tensor, score: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        kept = score > 0
        return x[kept], kept.nonzero().squeeze(1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 32), torch.randn(128)]


def get_init_inputs() -> list[object]:
    return []
