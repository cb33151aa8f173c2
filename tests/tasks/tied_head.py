"""Task: a bag of tokens whose head is its table: one tensor under two names."""

import torch
from torch import nn


class Model(nn.Module):
    """head(tanh(mean of the tokens' rows)), head.weight being table.weight."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.head = nn.Linear(width, rows, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(torch.tanh(self.table(ids).mean(1)))


BAGS, LENGTH, ROWS, WIDTH = 64, 16, 300, 64


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(0, ROWS, (BAGS, LENGTH))]


def get_init_inputs() -> list[object]:
    return [ROWS, WIDTH]
