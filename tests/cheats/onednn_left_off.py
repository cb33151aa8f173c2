"""Leaves oneDNN off and anomalies looked for.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "three_products"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.randn(n, n) * 0.1), nn.Parameter(torch.randn(n, n) * 0.1)

    def forward(self, x, y):
        torch.backends.mkldnn.set_flags(False)
        torch.autograd.set_detect_anomaly(True)
        return x @ self.a @ self.b + y
