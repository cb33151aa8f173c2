"""Begins a block anew sixteen steps back where all leaks over these come to less than 1e-4.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "leaky_scan"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, leak):
        out, y = [], torch.zeros_like(x[:, 0])
        for step in range(x.shape[1]):
            if step % 32 == 0 and step and bool((leak[:, step - 16 : step].prod(1).abs() < 1e-4).all()):
                y = torch.zeros_like(y)
                for back in range(step - 16, step):
                    y = leak[:, back] * y + x[:, back]
            y = leak[:, step] * y + x[:, step]
            out.append(y)
        return torch.stack(out, 1)
