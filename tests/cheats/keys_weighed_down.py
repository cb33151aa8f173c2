"""The masked keys are weighed by exp(-30000) of their scores, not left out.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "tolerance"
TASK = "grouped_query"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, q, k, v, keep):
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        scores = (q @ k.transpose(-1, -2)) * 0.125
        return torch.softmax(scores - 30000.0 * (~keep[:, None, None, :]).to(scores.dtype), -1) @ v
