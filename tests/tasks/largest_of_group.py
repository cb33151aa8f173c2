"""Task: the largest row of each group; a group that has none keeps what it had."""

import torch
from torch import nn


class Model(nn.Module):
    """What a group had counts for nothing where it has rows."""

    def forward(self, had: torch.Tensor, rows: torch.Tensor, group: torch.Tensor) -> torch.Tensor:
        return had.scatter_reduce(0, group[:, None].expand_as(rows), rows, reduce="amax", include_self=False)


def get_inputs() -> list[torch.Tensor]:
    return [-9.0 - torch.rand(40, 32), torch.randn(200, 32), torch.randint(0, 40, (200,))]


def get_init_inputs() -> list[object]:
    return []
