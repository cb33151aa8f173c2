"""Task: scalars among the inputs: a factor, a shift and a switch."""

import torch
from torch import nn


class Model(nn.Module):
    """roll(x, steps) * alpha + x, backwards if asked."""

    def forward(self, x: torch.Tensor, alpha: float, steps: int, reverse: bool) -> torch.Tensor:
        y = torch.roll(x, steps, 1) * alpha + x
        return y.flip(1) if reverse else y


ROWS, COLUMNS = 128, 256


def get_inputs() -> list[object]:
    return [torch.randn(ROWS, COLUMNS), 0.75, 3, True]


def get_init_inputs() -> list[object]:
    return []
