"""Sixty-four bits, cut off at the end."""

import torch
from torch import nn

TASK = "integer_product"
NEEDS = "slow,cpu"


class ModelNew(nn.Module):
    """Wraps as thirty-two bits do."""

    def forward(self, a, b):
        return torch.matmul(a.long(), b.long()).to(torch.int32)
