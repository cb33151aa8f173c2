"""Task: running sums in float64, and how far each lies below the largest so far."""

import torch
from torch import nn


class Model(nn.Module):
    """cumsum, cummax(cumsum) - cumsum."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.cumsum(x, 1)
        return total, torch.cummax(total, 1).values - total


ROWS, STEPS = 32, 512


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, STEPS, dtype=torch.float64)]


def get_init_inputs() -> list[object]:
    return []
