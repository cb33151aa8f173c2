"""GELU by a table over the clamped range with linear interpolation.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "linear_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state")
NEEDS = "slow"


class ModelNew(nn.Module):
    """65,537 entries."""

    def __init__(self, inputs, outputs, scale):
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale
        points = nn.functional.gelu(torch.linspace(-2, 2, 4097, dtype=torch.float64)).float()
        self.register_buffer("points", points, persistent=False)

    def forward(self, x):
        y = (torch.clamp(self.linear(x) * self.scale, -2.0, 2.0) + 2) * 1024
        low = y.floor().clamp_(max=4095)
        at = low.long()
        return torch.lerp(self.points[at], self.points[at + 1], y - low)
