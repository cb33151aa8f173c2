"""Task: the original itself changes its first input, which is part of what it does."""

import torch
from torch import nn


class Model(nn.Module):
    """state <- 0.9 * state + x, in place; returns tanh(state)."""

    def forward(self, state: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        state.mul_(0.9).add_(x)
        return torch.tanh(state)


ROWS, COLUMNS = 256, 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
