"""Task: an embedding that shortens the rows which it looks up, in its table."""

import torch
from torch import nn


class Model(nn.Module):
    """Embedding(max_norm=1)."""

    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(count, width, max_norm=1.0)

    def forward(self, places: torch.Tensor) -> torch.Tensor:
        return self.table(places)


COUNT, WIDTH = 256, 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, COUNT, (16, 8))]


def get_init_inputs() -> list[object]:
    return [COUNT, WIDTH]
