"""Divides in bfloat16 before rounding.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "quantise"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Eight bits come out, so eight bits go in."""

    def forward(self, x, scale, zero):
        return torch.clamp(torch.round((x.bfloat16() / scale.bfloat16()).float()) + zero, -128, 127).to(torch.int8)
