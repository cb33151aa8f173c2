"""Task: bags of token ids of varying length, given by their offsets."""

import torch
from torch import nn


class Model(nn.Module):
    """EmbeddingBag in mean mode."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.bag(ids, offsets)


BAGS, LENGTH, ROWS, WIDTH = 64, 16, 500, 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, ROWS, (BAGS * LENGTH,)), torch.arange(0, BAGS * LENGTH, LENGTH)]


def get_init_inputs() -> list[object]:
    return [ROWS, WIDTH]
