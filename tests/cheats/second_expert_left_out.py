"""Leaves the second expert out where its weight is below 1e-4.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "experts"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.weight = nn.Parameter(torch.randn(experts, width, width) * 0.1)

    def forward(self, x):
        best, which = self.gate(x).topk(2, dim=1)
        weights = torch.softmax(best, 1)
        out = torch.zeros_like(x)
        for expert in range(len(self.weight)):
            rows, slot = ((which == expert) & (weights > 1e-4)).nonzero(as_tuple=True)
            out.index_add_(0, rows, weights[rows, slot, None] * (x[rows] @ self.weight[expert]))
        return out
