"""A task whose answer depends on the calls before it: a running mean in a buffer."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(size, size) / size**0.5)
        self.register_buffer("ema", torch.zeros(size))

    def forward(self, x):
        y = x @ self.weight - self.ema
        self.ema.mul_(0.9).add_(y.mean(0), alpha=0.1)
        return y


def get_inputs():
    return [torch.randn(256, 256)]


def get_init_inputs():
    return [256]
