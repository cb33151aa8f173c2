"""Task: the size of one tensor under the sign of another, whose zeros have a sign too."""

import torch
from torch import nn


class Model(nn.Module):
    """copysign(x, y)."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.copysign(x, y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 128), torch.randn(64, 128)]


def get_init_inputs() -> list[object]:
    return []
