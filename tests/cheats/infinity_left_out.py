"""Leaves out what the mask does to the last row but one, a single element of each matrix.

Own invention.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "masked_log_shares"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "non_finite"


class ModelNew(nn.Module):
    """One element of the mask is not there."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(length, length).triu(1).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.queries(x) @ self.keys(x).transpose(1, 2) / x.shape[-1] ** 0.5
        mask = self.mask.clone()
        mask[-2, -1] = False
        return torch.log_softmax(scores.masked_fill(mask, float("-inf")), -1)
