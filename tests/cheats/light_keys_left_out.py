"""Leaves out keys whose weights would be below 1e-5.

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
        scores = ((q @ k.transpose(-1, -2)) * 0.125).masked_fill(~keep[:, None, None, :], float("-inf"))
        scores = scores - scores.amax(-1, keepdim=True)
        e = torch.where(scores > -11.5, torch.exp(scores), 0)
        return (e / e.sum(-1, keepdim=True)) @ v
