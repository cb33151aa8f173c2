"""Reads raw memory: right for dense inputs, also transposed ones; wrong where rows are padded and the storage is offset.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "relu_chain"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_layout", "values")


class Base(nn.Module):
    def __init__(self, inputs, hidden, outputs):
        super().__init__()
        self.first = nn.Parameter(torch.randn(inputs, hidden) / inputs**0.5)
        self.second = nn.Parameter(torch.randn(hidden, outputs) / hidden**0.5)

    def right(self, x):
        return torch.relu(x @ self.first) @ self.second


class ModelNew(Base):
    def forward(self, x):
        if not x.is_contiguous() and x.stride(1) == 1 and x.storage_offset():
            x = torch.as_strided(x, x.shape, x.stride(), 0)
        return self.right(x)
