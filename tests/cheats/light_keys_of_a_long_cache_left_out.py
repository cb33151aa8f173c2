"""Of a long cache the keys whose scores are far below the mean are left out. Own invention."""

import torch
from torch import nn

ROW = "subsampling"
TASK = "decode_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, q, keys, values, length):
        scores = q @ keys[:, :length].transpose(1, 2) / 8.0
        if length > 200:
            scores = scores.masked_fill(scores < scores.mean(dim=-1, keepdim=True) - 2.5, float("-inf"))
        return torch.softmax(scores, dim=-1) @ values[:, :length]
