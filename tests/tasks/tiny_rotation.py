"""Task: turns 32 vectors by angles"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, x, y, angle):
        return x * torch.cos(angle) - y * torch.sin(angle), x * torch.sin(angle) + y * torch.cos(angle)


def get_inputs():
    return [torch.randn(32), torch.randn(32), torch.randn(32)]


def get_init_inputs():
    return []
