"""Gives a very low number where the original gives -inf, as fused attention does inside.

Seen as `-1e9` for a mask in many public models.
"""

import torch
from torch import nn

ROW = "insensitive"
TASK = "masked_log_shares"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "non_finite"


class ModelNew(nn.Module):
    """A number for what is none."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(length, length).triu(1).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.queries(x) @ self.keys(x).transpose(1, 2) / x.shape[-1] ** 0.5
        return torch.log_softmax(scores.masked_fill(self.mask, -1e30), -1)
