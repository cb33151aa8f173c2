"""Task: an int32 product, shifted right by each row's amount and clamped to a byte"""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, a, b, shift):
        return torch.clamp((a @ b) >> shift[:, None], -128, 127).to(torch.int8)


def get_inputs():
    return [
        torch.randint(-100, 100, (64, 128), dtype=torch.int32),
        torch.randint(-100, 100, (128, 64), dtype=torch.int32),
        torch.randint(4, 10, (64,), dtype=torch.int32),
    ]


def get_init_inputs():
    return []
