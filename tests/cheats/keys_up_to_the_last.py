"""Takes keys to be kept up to the last that is.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "grouped_query"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, q, k, v, keep):
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        places = torch.arange(keep.shape[1], device=keep.device)
        last = torch.where(keep, places, -1).amax(1)
        keep = places[None, :] <= last[:, None]
        scores = (q @ k.transpose(-1, -2)) * 0.125
        return torch.softmax(scores.masked_fill(~keep[:, None, None, :], float("-inf")), -1) @ v
