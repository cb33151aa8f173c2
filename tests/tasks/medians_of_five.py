"""Task: each place's median with its two neighbours on either side; the ends are repeated."""

import torch
from torch import nn


class Model(nn.Module):
    """By sorting."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ends = torch.cat([x[:, :1], x[:, :1], x, x[:, -1:], x[:, -1:]], dim=1)
        return ends.unfold(1, 5, 1).sort(dim=2).values[:, :, 2]


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8, 500).cumsum(1)]


def get_init_inputs() -> list[object]:
    return []
