"""Factors in two digits of seven bits each, as tensor cores want them."""

import torch
from torch import nn

TASK = "integer_product"
NEEDS = "cpu"


class ModelNew(nn.Module):
    """Four products that wrap around like the original."""

    def forward(self, a, b):
        low = b & 127
        return torch.matmul(a, b >> 7) * 128 + torch.matmul(a, low)
