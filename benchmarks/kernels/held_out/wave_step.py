"""One step of a wave on a grid, by differences of neighbours."""

import torch
from torch import nn

GRIDS, SIZE = 16, 1024


class Model(nn.Module):
    def forward(self, now: torch.Tensor, before: torch.Tensor, speed: torch.Tensor) -> torch.Tensor:
        around = now.roll(1, 1) + now.roll(-1, 1) + now.roll(1, 2) + now.roll(-1, 2) - 4 * now
        return 2 * now - before + 0.1 * speed * around


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(GRIDS, SIZE, SIZE), torch.randn(GRIDS, SIZE, SIZE), torch.rand(1, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return []
