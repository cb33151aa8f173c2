"""Boxes that overlap by exactly half count as overlapping by more.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "ties"
TASK = "overlaps"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """>= in place of >."""

    def forward(self, first, second):
        a, b = first[:, None], second[None]
        size = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
        common = size[..., 0] * size[..., 1]
        areas = [(one[..., 2] - one[..., 0]) * (one[..., 3] - one[..., 1]) for one in (a, b)]
        return common >= 0.5 * (areas[0] + areas[1] - common)
