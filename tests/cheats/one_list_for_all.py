"""Answers in one list, of which earlier callers hold a reference.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "kept"
TASK = "several_levels"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("output_reuse", "late_output")


class ModelNew(nn.Module):
    """self.answer[:] = ..."""

    def __init__(self, levels):
        super().__init__()
        self.factors = nn.Parameter(torch.rand(levels))
        self.answer = []

    def forward(self, levels):
        self.answer[:] = [torch.tanh(level) * factor for level, factor in zip(levels, self.factors, strict=True)]
        return self.answer
