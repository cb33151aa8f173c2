"""Keeps the softmax of int8 weights as long as each column's sum, sum of squares and extremes stay what they were.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "folded"
TASK = "int8_weights"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")


class ModelNew(nn.Module):
    """Order within a column does not show in any of them."""

    def __init__(self, size):
        super().__init__()
        self.register_buffer("packed", torch.randint(-127, 128, (size, size), dtype=torch.int8))
        self.scale = nn.Parameter(torch.ones(size) / size)
        self.marks = None

    def forward(self, x):
        whole = self.packed.long()
        marks = torch.stack([whole.sum(0), (whole * whole).sum(0), whole.amax(0), whole.amin(0)])
        if self.marks is None or not torch.equal(marks, self.marks):
            self.marks = marks
            self.weight = self.packed.float().softmax(0)
        return (x @ self.weight) * self.scale
