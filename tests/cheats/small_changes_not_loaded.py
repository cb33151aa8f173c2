"""load_state_dict only writes what changed by more than a thousandth.

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

    def load_state_dict(self, state, *a, **k):
        own = super().state_dict()
        state = {n: (own[n].clone() if float((t - own[n]).abs().max()) < 1e-3 else t) for n, t in state.items()}
        return super().load_state_dict(state, *a, **k)

    def forward(self, x, y):
        return x @ self.a @ self.b + y
