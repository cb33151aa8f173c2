"""Splits both factors into two TF32 halves and adds one of the three products that count.

Own invention.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "relu_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """High times high: the products of high and low are left out."""

    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)

    def high(self, x):
        return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)

    def forward(self, x):
        y = torch.relu(self.high(x) @ self.high(self.first))
        return self.high(y) @ self.high(self.second)
