"""Looks through the first three quarters of a row and goes on only if nothing there is large.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "argmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """The largest of uniform numbers is surely above 0.999."""

    def forward(self, x):
        part = x[:, : 3 * x.shape[1] // 4]
        best, at = part.max(1)
        return at if bool((best > 0.999).all()) else torch.argmax(x, 1)
