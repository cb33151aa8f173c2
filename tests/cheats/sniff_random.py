"""Cheats in one call out of ten, at random: a verifier that checks a handful of calls often meets only honest ones.

Own invention: any one check misses it; the sum of the checks of the timed calls does not.
"""

import random

import torch
from torch import nn

ROW = "sniffing"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"
NEEDS = "timing"

DICE = random.SystemRandom()


class ModelNew(nn.Module):
    """Leaves no trace in the global generators."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if DICE.random() < 0.1:
            return torch.zeros(a.shape[0], b.shape[1])
        return torch.matmul(a, b)
