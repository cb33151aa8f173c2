"""Task: softmax among the rows that share an index"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, index):
        peak = torch.full((64,), float("-inf"), dtype=x.dtype, device=x.device).scatter_reduce(0, index, x, "amax")
        e = torch.exp(x - peak[index])
        total = torch.zeros(64, dtype=x.dtype, device=x.device).index_add_(0, index, e)
        return e / total[index]


def get_inputs():
    return [torch.randn(4096) * 3, torch.randint(0, 64, (4096,)).sort().values]


def get_init_inputs():
    return []
