"""Task: a stable sort of numbers many of which are equal."""

import torch
from torch import nn


class Model(nn.Module):
    """sort(stable=True): values and places."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, places = torch.sort(x, dim=1, stable=True)
        return values, places


ROWS, COLUMNS = 64, 128


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, 50, (ROWS, COLUMNS)).float()]


def get_init_inputs() -> list[object]:
    return []
