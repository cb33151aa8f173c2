"""Adds noise below the tolerance of the 1e-2 era: two calls on one input give two answers.

Seen: the randomness row of the table: a draw hides a systematic error.
"""

import torch
from torch import nn

ROW = "randomness"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "repeat")

NOISE = torch.Generator().manual_seed(7)


class ModelNew(nn.Module):
    """Relative noise of 1e-3 from a private generator."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.softmax(x, dim=1)
        return y * (1 + 1e-3 * torch.randn(y.shape, generator=NOISE).to(y.device))
