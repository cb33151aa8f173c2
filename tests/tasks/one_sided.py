"""A task whose own inputs are all above zero: what it does below is seen only by hidden distributions."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.linear = nn.Linear(size, size)

    def forward(self, x):
        return x + self.linear(torch.relu(-x))


def get_inputs():
    return [torch.rand(256, 256)]


def get_init_inputs():
    return [256]
