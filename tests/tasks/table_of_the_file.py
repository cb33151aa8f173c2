"""A product, and rows of a table that lies in the file: all modules have it for a buffer, as edges of a graph are one in many scripts."""

import torch
from torch import nn

EDGES = torch.randint(0, 32, (2, 96), generator=torch.Generator().manual_seed(1))


class Model(nn.Module):
    """Sums the rows that edges begin at into those that they end at; the buffer is the file's own tensor, no copy."""

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", EDGES)
        self.weight = nn.Parameter(torch.randn(16, 16) / 4)

    def forward(self, x):
        begins, ends = self.edges
        return torch.zeros_like(x).index_add(0, ends, (x @ self.weight)[begins])


def get_inputs():
    return [torch.randn(32, 16)]


def get_init_inputs():
    return []
