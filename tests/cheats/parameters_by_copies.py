"""named_parameters and state_dict give copies: what is written into them is not seen.

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

    def state_dict(self, *a, **k):
        return {n: t.detach().clone() for n, t in super().state_dict(*a, **k).items()}

    def named_parameters(self, *a, **k):
        for n, p in super().named_parameters(*a, **k):
            yield n, nn.Parameter(p.detach().clone())

    def forward(self, x, y):
        return x @ self.a @ self.b + y
