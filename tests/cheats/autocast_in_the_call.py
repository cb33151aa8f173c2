"""Runs the layer under autocast in bfloat16.

Own invention.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "gated_unit"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """The context ends with the call."""

    def __init__(self, width):
        super().__init__()
        self.gate = nn.Linear(width, width)
        self.value = nn.Linear(width, width)

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            y = torch.sigmoid(self.gate(x)) * self.value(x)
        return y.float()
