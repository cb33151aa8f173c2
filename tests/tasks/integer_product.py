"""Task: a product of integer matrices."""

import torch
from torch import nn


class Model(nn.Module):
    """A @ B in int32."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


N = 96


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(-99, 100, (N, N), dtype=torch.int32) for _ in range(2)]


def get_init_inputs() -> list[object]:
    return []
