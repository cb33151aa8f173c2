"""Task: means over bags of token ids, of which one is padding; the bags begin anywhere, the first at the start."""

import torch
from torch import nn


class Model(nn.Module):
    """EmbeddingBag in mean mode with a padding index."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean", padding_idx=0)

    def forward(self, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.bag(ids, offsets)


IDS, BAGS, ROWS, WIDTH = 1024, 128, 500, 32


def get_inputs() -> list[torch.Tensor]:
    offsets = torch.randint(1, IDS, (BAGS - 1,)).sort().values
    return [torch.randint(0, ROWS, (IDS,)), torch.cat([torch.zeros(1, dtype=torch.long), offsets])]


def get_init_inputs() -> list[object]:
    return [ROWS, WIDTH]
