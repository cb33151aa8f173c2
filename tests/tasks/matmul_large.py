"""Task: the product of two larger matrices: some 20 ms, enough to be worth hiding."""

import torch
from torch import nn


class Model(nn.Module):
    """A @ B."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


N = 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(N, N), torch.randn(N, N)]


def get_init_inputs() -> list[object]:
    return []
