"""Task: two experts of eight for each token, weighed by a softmax over the two"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)
        self.weight = nn.Parameter(torch.randn(experts, width, width) * 0.1)

    def forward(self, x):
        best, which = self.gate(x).topk(2, dim=1)
        weights = torch.softmax(best, 1)
        out = torch.zeros_like(x)
        for expert in range(len(self.weight)):
            rows, slot = (which == expert).nonzero(as_tuple=True)
            out.index_add_(0, rows, weights[rows, slot, None] * (x[rows] @ self.weight[expert]))
        return out


def get_inputs():
    return [torch.randn(256, 64)]


def get_init_inputs():
    return [64, 8]
