"""Packs both weights into one; packs again when a parameter's version or address changes, which .data does not do.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "folded"
TASK = "gated_unit"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "stale_state"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.key = None

    def forward(self, x):
        key = tuple((p._version, p.data_ptr()) for p in self.parameters())
        if key != self.key:
            self.w = torch.cat((self.gate.weight, self.value.weight)).detach().t().contiguous()
            self.b = torch.cat((self.gate.bias, self.value.bias)).detach()
            self.key = key
        y = torch.addmm(self.b, x, self.w)
        return torch.sigmoid(y[:, :64]) * y[:, 64:]
