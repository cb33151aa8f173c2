"""Task: the bucket of each value between sorted edges."""

import torch
from torch import nn


class Model(nn.Module):
    """searchsorted(edges, x): a value on an edge belongs to the bucket below it."""

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(edges, x)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128), torch.linspace(-2, 2, 33)]


def get_init_inputs() -> list[object]:
    return []
