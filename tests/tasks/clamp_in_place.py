"""Task: a step into a box, written into the input"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, step, low: float, high: float):
        x.sub_(step, alpha=0.5).clamp_(low, high)
        return x.sum(1)


def get_inputs():
    return [torch.randn(256, 128), torch.randn(256, 128), -1.0, 1.5]


def get_init_inputs():
    return []
