"""A task that returns one of torch.return_types: two tensors, the second of indices."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x):
        return torch.sort(x, dim=1)


def get_inputs():
    return [torch.randn(64, 100)]


def get_init_inputs():
    return []
