"""Goes by slopes that are not negative, as they begin.

Own invention, written before the mends.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "sloped_attention"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("stale_state", "values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.slopes = nn.Parameter(torch.rand(heads) * 0.5 + 0.1)

    def forward(self, q, k, v):
        at = torch.arange(q.shape[2], device=q.device)
        cost = self.slopes.abs()[:, None, None] * (at[:, None] - at[None, :]).abs().to(q.dtype)
        return torch.softmax(q @ k.mT * q.shape[-1] ** -0.5 - cost, -1) @ v
