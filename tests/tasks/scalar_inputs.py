"""Task: Python numbers as inputs: a scale and a shift of the rows."""

import torch
from torch import nn


class Model(nn.Module):
    """alpha * roll(x, steps) + beta."""

    def forward(self, x: torch.Tensor, alpha: float, steps: int, beta: float) -> torch.Tensor:
        return alpha * x.roll(steps, 0) + beta


ROWS, COLUMNS = 128, 256


def get_inputs() -> list[object]:
    return [torch.randn(ROWS, COLUMNS), 0.5, 3, 0.0]


def get_init_inputs() -> list[object]:
    return []
