"""Task: float64 on purpose: row norms of nearly equal vectors."""

import torch
from torch import nn


class Model(nn.Module):
    """Euclidean norm of each row, in float64."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sqrt((x * x).sum(dim=1))


ROWS, COLUMNS = 256, 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.float64)]


def get_init_inputs() -> list[object]:
    return []
