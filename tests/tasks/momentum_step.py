"""Task: a step with momentum, in place: velocity and position are changed and returned."""

import torch
from torch import nn


class Model(nn.Module):
    """velocity = 0.9 velocity + gradient; position -= 0.1 velocity."""

    def forward(self, position: torch.Tensor, velocity: torch.Tensor, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        velocity.mul_(0.9).add_(gradient)
        position.sub_(velocity, alpha=0.1)
        return position, velocity


ROWS, COLUMNS = 128, 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, COLUMNS) for _ in range(3)]


def get_init_inputs() -> list[object]:
    return []
