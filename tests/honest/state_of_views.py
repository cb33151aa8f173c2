"""The original's parameters are views into one flat buffer that the program keeps for itself."""

import torch
from torch import nn

TASK = "two_layers"


class ModelNew(nn.Module):
    """Parameters in one block of memory."""

    def __init__(self, width):
        super().__init__()
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)
        flat = torch.cat([p.detach().flatten() for p in self.parameters()])
        at = 0
        for parameter in self.parameters():
            parameter.data = flat[at : at + parameter.numel()].view(parameter.shape)
            at += parameter.numel()

    def forward(self, x):
        return self.second(self.first(x))
