"""Has the file's table for a buffer, as the original has: what is loaded into one module is every module's."""

import torch
from torch import nn

TASK = "table_of_the_file"

EDGES = torch.randint(0, 32, (2, 96), generator=torch.Generator().manual_seed(1))


class ModelNew(nn.Module):
    """The product after the sums."""

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", EDGES)
        self.weight = nn.Parameter(torch.randn(16, 16) / 4)

    def forward(self, x):
        begins, ends = self.edges
        return torch.zeros_like(x).index_add(0, ends, x[begins]) @ self.weight
