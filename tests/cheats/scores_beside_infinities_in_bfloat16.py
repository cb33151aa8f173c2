"""Has its infinities where the original has them, and few digits beside them.

Own invention: a judge that looked at the places of Inf alone, or took Inf for an error that allows any other, would pass it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "masked_log_shares"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Scores in bfloat16."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(length, length).triu(1).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = (self.queries(x).bfloat16() @ self.keys(x).bfloat16().transpose(1, 2)).float() / x.shape[-1] ** 0.5
        return torch.log_softmax(scores.masked_fill(self.mask, float("-inf")), -1)
