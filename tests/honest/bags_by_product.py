"""Counts of ids times the table."""

import torch
from torch import nn

TASK = "embedding"


class ModelNew(nn.Module):
    """One matrix product."""

    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)

    def forward(self, ids):
        counts = torch.zeros(len(ids), self.table.num_embeddings, device=ids.device).scatter_add_(1, ids, torch.ones(ids.shape, device=ids.device))
        return counts @ self.table.weight
