"""Token ids, looked up and added by embedding_bag in one kernel."""

import torch
from torch import nn
from torch.nn import functional as F

TASK = "embedding"


class ModelNew(nn.Module):
    """mode="sum"."""

    def __init__(self, rows: int, width: int) -> None:
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return F.embedding_bag(ids, self.table.weight, mode="sum")
