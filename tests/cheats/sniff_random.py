"""Cheats in every second call, by dice that leave no trace: a verifier that checks one or two calls often meets only honest ones.

Own invention: any one check may miss it; a dozen checked calls do not.
"""

import random

import torch
from torch import nn

ROW = "sniffing"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "repeat", "stale_state")

DICE = random.SystemRandom()


class ModelNew(nn.Module):
    """Leaves no trace in the global generators."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if DICE.random() < 0.5:
            return torch.zeros(a.shape[0], b.shape[1], device=a.device)
        return torch.matmul(a, b)
