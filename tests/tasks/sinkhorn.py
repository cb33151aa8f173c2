"""Task: twenty steps towards rows and columns that add up to one"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        for _ in range(20):
            x = x - torch.logsumexp(x, 1, keepdim=True)
            x = x - torch.logsumexp(x, 2, keepdim=True)
        return x.exp()


def get_inputs():
    return [torch.randn(8, 32, 32)]


def get_init_inputs():
    return []
