"""Clamps before it rounds."""

import torch
from torch import nn

TASK = "quantise"


class ModelNew(nn.Module):
    """The same integers in another order."""

    def forward(self, x, scale, zero):
        return (torch.clamp(x / scale, -128 - zero, 127 - zero).round_() + zero).to(torch.int8)
