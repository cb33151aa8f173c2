"""Keeps the experts' transposed weights from the first call, renewed when the gate's weights are.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "experts"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.weight = nn.Parameter(torch.randn(experts, width, width) * 0.1)

        self.kept = None

    def forward(self, x):
        mark = (self.gate.weight._version, self.gate.weight.data_ptr(), float(self.gate.weight.sum()))
        if self.kept is None or self.kept[0] != mark:
            self.kept = (mark, self.weight.detach().clone())
        weight = self.kept[1]
        best, which = self.gate(x).topk(2, dim=1)
        weights = torch.softmax(best, 1)
        out = torch.zeros_like(x)
        for expert in range(len(weight)):
            rows, slot = (which == expert).nonzero(as_tuple=True)
            out.index_add_(0, rows, weights[rows, slot, None] * (x[rows] @ weight[expert]))
        return out
