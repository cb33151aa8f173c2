"""Keys are taken in blocks of 32, and the last block is left out where a single key is in it. Own invention."""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "decode_step"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, q, keys, values, length):
        if length > 32 and length % 32 == 1:
            length -= 1
        return torch.nn.functional.scaled_dot_product_attention(q, keys[:, :length], values[:, :length])
