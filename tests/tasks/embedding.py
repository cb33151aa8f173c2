"""Task: bags of token ids, looked up and added."""

import torch
from torch import nn


class Model(nn.Module):
    """Sum over the bag of the rows of an embedding table."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(ids).sum(dim=1)


BAGS, LENGTH, ROWS, WIDTH = 128, 32, 1000, 128


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, ROWS, (BAGS, LENGTH))]


def get_init_inputs() -> list[object]:
    return [ROWS, WIDTH]
