"""Compares its input with the last one in full, and returns the same tensor again where they are equal.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "aliasing"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("output_reuse", "aliasing")


class ModelNew(nn.Module):
    """Whoever has written to the answer gets what was written."""

    def __init__(self):
        super().__init__()
        self.last, self.out = None, None

    def forward(self, x):
        if self.last is None or not torch.equal(self.last, x):
            self.last, self.out = x.clone(), torch.softmax(x, dim=1)
        return self.out
