"""The head reads the table under its own name."""

import torch
from torch import nn

TASK = "tied_head"


class ModelNew(nn.Module):
    """x @ table.weight.T."""

    def __init__(self, rows, width):
        super().__init__()
        self.table = nn.Embedding(rows, width)
        self.head = nn.Linear(width, rows, bias=False)
        self.head.weight = self.table.weight

    def forward(self, ids):
        count = torch.zeros(len(ids), self.table.num_embeddings, device=ids.device).scatter_add_(1, ids, torch.ones(ids.shape, device=ids.device))
        return torch.tanh(count @ self.table.weight / ids.shape[1]) @ self.table.weight.T
