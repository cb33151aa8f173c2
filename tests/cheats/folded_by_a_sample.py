"""Keeps a @ b until a call whose x is another storage's and whose sum of weights changed by more than rounding.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "three_products"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(n, n) * 0.1), nn.Parameter(torch.randn(n, n) * 0.1)

        self.kept = None

    def forward(self, x, y):
        mark = self.a.detach()[::7, ::5].clone(), self.b.detach()[::5, ::7].clone()
        if self.kept is None or not (torch.equal(mark[0], self.kept[0][0]) and torch.equal(mark[1], self.kept[0][1])):
            self.kept = mark, (self.a @ self.b).detach()
        return x @ self.kept[1] + y
