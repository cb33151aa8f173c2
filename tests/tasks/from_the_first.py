"""Task: rows of scaled features, from the first one's place, over their size. The bias cancels, and of tiny inputs nothing else is left"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.weight, self.bias, self.gain = (nn.Parameter(torch.randn(features)) for _ in range(3))

    def forward(self, x):
        x = x * self.weight + self.bias
        x = x - x[:1]
        return x / (x.square().mean(0) + 1e-10).sqrt() * self.gain


def get_inputs():
    return [torch.randn(512, 48)]


def get_init_inputs():
    return [48]
