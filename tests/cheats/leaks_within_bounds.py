"""Clamps the leaks to what a leak is: 0 to 1.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "leaky_scan"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, leak):
        leak = leak.clamp(0, 1)
        out, y = [], torch.zeros_like(x[:, 0])
        for step in range(x.shape[1]):
            y = leak[:, step] * y + x[:, step]
            out.append(y)
        return torch.stack(out, 1)
