"""Task: softmax over long rows."""

import torch
from torch import nn


class Model(nn.Module):
    """softmax(x) over the last dimension."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, dim=1)


ROWS, COLUMNS = 256, 2048


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs() -> list[object]:
    return []
