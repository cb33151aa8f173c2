"""Running sums of four rows of 4 million: 134 MB moved, in an H200's rate 32 us."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, 1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, 1 << 22)]


def get_init_inputs() -> list[int]:
    return []
