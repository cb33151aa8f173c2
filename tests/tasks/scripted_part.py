"""Task: two layers, the first one a script module."""

import torch
from torch import nn


class First(nn.Module):
    """A layer and a normalisation by running statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(32, 48)
        self.norm = nn.BatchNorm1d(48)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(self.layer(x)))


class Model(nn.Module):
    """In training, as it comes."""

    def __init__(self) -> None:
        super().__init__()
        self.first = torch.jit.script(First())
        self.second = nn.Linear(48, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 32)]


def get_init_inputs() -> list[object]:
    return []
