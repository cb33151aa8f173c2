"""Task: a running sum in float64."""

import torch
from torch import nn


class Model(nn.Module):
    """cumsum along the rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cumsum(x, 1)


ROWS, COLUMNS = 32, 4096


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS, dtype=torch.float64)]


def get_init_inputs() -> list[object]:
    return []
