"""Leaves keys out whose distance costs more than 25, whatever their score is.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "sloped_attention"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slopes = nn.Parameter(torch.rand(heads) * 0.5 + 0.1)

    def forward(self, q, k, v):
        at = torch.arange(q.shape[2], device=q.device)
        cost = self.slopes[:, None, None] * (at[:, None] - at[None, :]).abs().to(q.dtype)
        scores = (q @ k.mT * q.shape[-1] ** -0.5 - cost).masked_fill(cost > 25, -torch.inf)
        return torch.softmax(scores, -1) @ v
