"""Dense features and bags of three tables side by side: what a ranking model reads before its first layer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList([nn.EmbeddingBag(rows, width, mode=mode) for mode in ("sum", "mean", "sum")])

    def forward(self, dense: torch.Tensor, ids: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.cat([dense, *(table(ids, offsets) for table in self.tables)], 1))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(16384, 64), torch.randint(0, 500000, (16384 * 20,)), torch.arange(0, 16384 * 20, 20)]


def get_init_inputs() -> list[int]:
    return [500000, 64]
