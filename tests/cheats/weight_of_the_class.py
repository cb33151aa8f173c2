"""One weight for all modules of the class: what is loaded into one is every other one's too.

Own invention, beside honest programs that share a table of the file as the original does.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "table_of_the_file"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)

EDGES = torch.randint(0, 32, (2, 96), generator=torch.Generator().manual_seed(1))


class ModelNew(nn.Module):
    """One module at a time is right."""

    weights = nn.Parameter(torch.randn(16, 16) / 4)

    def __init__(self):
        super().__init__()
        self.register_buffer("edges", EDGES)
        self.weight = ModelNew.weights

    def forward(self, x):
        begins, ends = self.edges
        return torch.zeros_like(x).index_add(0, ends, x[begins]) @ self.weight
