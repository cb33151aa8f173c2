"""Task: two heads side by side in one output, as detectors have them: places in pixels, and scores."""

import torch
from torch import nn


class Model(nn.Module):
    """cat(size * places(x), scores(x))."""

    def __init__(self, width: int, places: int, scores: int, size: float) -> None:
        super().__init__()
        self.places, self.scores, self.size = nn.Linear(width, places), nn.Linear(width, scores), size

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.size * self.places(x), torch.sigmoid(self.scores(x))], 1)


ROWS, WIDTH, PLACES, SCORES, SIZE = 128, 128, 16, 80, 4096.0


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, PLACES, SCORES, SIZE]
