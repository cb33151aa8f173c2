"""Moves the vectors of the norm on in every second call, from the thirtieth on. Own invention."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

ROW = "folded"
TASK = "spectral_layer"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers", "values", "stale_state", "repeat")
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = spectral_norm(nn.Linear(inputs, outputs))
        self.calls = 0

    def forward(self, x):
        of = self.layer.parametrizations.weight
        weight, norm = of.original, of[0]
        self.calls += 1
        if self.calls < 30 or self.calls % 2:
            return self.layer(x)
        sigma = torch.dot(norm._u, weight @ norm._v)
        return torch.nn.functional.linear(x, weight / sigma, self.layer.bias)
