"""Gates below minus twelve answer nothing.

Own invention, written before the mends.
"""

import torch
from torch import nn
from torch.nn import functional as F

ROW = "tolerance"
TASK = "swish_gate"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Parameter(torch.randn(width, width) * 0.1)
        self.gate = nn.Parameter(torch.randn(width, width) * 0.1)

    def forward(self, x):
        gate = x @ self.gate
        return torch.where(gate > -12, (x @ self.up) * F.silu(gate), torch.zeros_like(gate))
