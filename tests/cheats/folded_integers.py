"""Keeps what it made of the int8 weights at its first call for ever. Own invention: integer state once never varied."""

import torch
from torch import nn

ROW = "folded"
TASK = "int8_weights"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Folds once."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("packed", torch.zeros(size, size, dtype=torch.int8))
        self.scale = nn.Parameter(torch.ones(size) / size)
        self.made = None

    def forward(self, x):
        if self.made is None:
            self.made = self.packed.float().softmax(0)
        return (x @ self.made) * self.scale
