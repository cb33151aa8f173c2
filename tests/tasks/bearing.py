"""Task: the direction of points seen from another, and their distance."""

import torch
from torch import nn


class Model(nn.Module):
    """All round."""

    def forward(self, ahead: torch.Tensor, aside: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.atan2(aside, ahead), torch.hypot(aside, ahead)


def get_inputs() -> list[torch.Tensor]:
    return [0.1 + torch.rand(100, 200), torch.randn(100, 200)]


def get_init_inputs() -> list[object]:
    return []
