"""Repeats the border where the original has zeros: no place of the file's own grids lies outside.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "sampled_grid"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """padding_mode="border"."""

    def forward(self, image, grid):
        return torch.nn.functional.grid_sample(image, grid, padding_mode="border", align_corners=False)
