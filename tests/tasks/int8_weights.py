"""A layer with int8 weights in a buffer, as quantised models have."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("packed", torch.randint(-127, 128, (size, size), dtype=torch.int8))
        self.scale = nn.Parameter(torch.ones(size) / size)

    def forward(self, x):
        return (x @ self.packed.float().softmax(0)) * self.scale


def get_inputs():
    return [torch.randn(64, 256)]


def get_init_inputs():
    return [256]
