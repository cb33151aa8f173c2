"""Task: a power by a Python number, with the sign kept"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, exponent):
        return torch.sign(x) * x.abs().pow(exponent)


def get_inputs():
    return [torch.randn(64, 256), 1.5]


def get_init_inputs():
    return []
