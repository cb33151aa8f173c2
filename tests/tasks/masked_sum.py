"""Task: a sum over the elements that a mask keeps; the file keeps them all."""

import torch
from torch import nn


class Model(nn.Module):
    """Row sums of x where the mask is set."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (x * mask).sum(dim=1)


ROWS, COLUMNS = 256, 512


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS), torch.rand(ROWS, COLUMNS) < 0.999]


def get_init_inputs() -> list[object]:
    return []
