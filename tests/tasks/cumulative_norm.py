"""Task: batch normalisation in training whose running statistics are means over all calls"""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.BatchNorm1d(width, momentum=None)

    def forward(self, x):
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.randn(256, 64)]


def get_init_inputs():
    return [64]
