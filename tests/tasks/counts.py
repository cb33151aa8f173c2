"""Task: how often each value occurs, weighed, and where each begins when sorted"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, index, weight):
        counts = torch.zeros(100, dtype=weight.dtype, device=weight.device).index_add_(0, index, weight)
        begins = torch.searchsorted(index.sort().values, torch.arange(100, device=index.device))
        return {"counts": counts, "begins": begins}


def get_inputs():
    return [torch.randint(0, 100, (4096,)), torch.rand(4096)]


def get_init_inputs():
    return []
