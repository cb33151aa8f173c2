"""The inner dimension in blocks, their products added."""

import torch
from torch import nn

TASK = "matmul"
NEEDS = "slow"


class ModelNew(nn.Module):
    """Split K."""

    def forward(self, a, b):
        parts = torch.bmm(a.reshape(len(a), 4, -1).transpose(0, 1).contiguous(), b.reshape(4, -1, b.shape[1]))
        return parts.sum(0)
