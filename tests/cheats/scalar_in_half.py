"""Rounds the factor to half precision.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "scalar_inputs"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")
NEEDS = "slow"


class ModelNew(nn.Module):
    """0.5 survives."""

    def forward(self, x, alpha, steps, beta):
        return float(torch.tensor(alpha, device=x.device).half()) * x.roll(steps, 0) + beta
