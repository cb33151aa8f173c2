"""A cache that is full counts as one that has a key less. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "decode_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, q, keys, values, length):
        length = min(length, keys.shape[1] - 1)
        return torch.nn.functional.scaled_dot_product_attention(q, keys[:, :length], values[:, :length])
