"""torch.func.functional_call on a module whose own weights mean nothing."""

import torch
from torch import nn

TASK = "two_layers"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.__dict__["shape"] = nn.Linear(width, width)

    def forward(self, x):
        for layer in (self.first, self.second):
            x = torch.func.functional_call(self.shape, {"weight": layer.weight, "bias": layer.bias}, (x,))
        return x
