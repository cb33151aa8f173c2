"""Task: a deep product of int8 matrices in int32, each column times a factor that may make it wrap around."""

import torch
from torch import nn


class Model(nn.Module):
    """(A @ B) * factor in int32."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
        return (a.to(torch.int32) @ b.to(torch.int32)) * factor


ROWS, DEPTH, COLUMNS = 48, 2048, 24


def get_inputs() -> list[torch.Tensor]:
    bytes_ = [torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((ROWS, DEPTH), (DEPTH, COLUMNS))]
    return [*bytes_, torch.randint(-1000, 1000, (COLUMNS,), dtype=torch.int32)]


def get_init_inputs() -> list[object]:
    return []
