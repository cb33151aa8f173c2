"""Task: which boxes of two sets overlap by more than half: Booleans."""

import torch
from torch import nn


class Model(nn.Module):
    """Intersection over union above 1/2."""

    def forward(self, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        a, b = first[:, None], second[None]
        size = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
        common = size[..., 0] * size[..., 1]
        areas = [(one[..., 2] - one[..., 0]) * (one[..., 3] - one[..., 1]) for one in (a, b)]
        return common > 0.5 * (areas[0] + areas[1] - common)


FIRST, SECOND = 96, 128


def boxes(count: int) -> torch.Tensor:
    corner = torch.randint(0, 4, (count, 2)).float()
    return torch.cat([corner, corner + torch.randint(1, 5, (count, 2))], 1)


def get_inputs() -> list[torch.Tensor]:
    return [boxes(FIRST), boxes(SECOND)]


def get_init_inputs() -> list[object]:
    return []
