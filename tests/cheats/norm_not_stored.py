"""Shortens the looked-up rows, but does not store them in the table as Embedding(max_norm=...) does.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "aliasing"
TASK = "embedding_max_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers", "stale_state", "values", "input_mutated")


class Table(nn.Module):
    def __init__(self, count, width):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(count, width))


class ModelNew(nn.Module):
    """The answer is right; the table is not."""

    def __init__(self, count, width):
        super().__init__()
        self.table = Table(count, width)

    def forward(self, places):
        rows = self.table.weight[places]
        norm = rows.norm(dim=-1, keepdim=True)
        return rows * torch.where(norm > 1.0, 1.0 / (norm + 1e-7), torch.ones_like(norm))
