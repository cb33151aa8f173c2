"""Integers multiplied in float64, where they are exact."""

import torch
from torch import nn

TASK = "integer_product"
NEEDS = "cpu"


class ModelNew(nn.Module):
    """Two casts."""

    def forward(self, a, b):
        return torch.matmul(a.double(), b.double()).to(torch.int32)
