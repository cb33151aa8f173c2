"""Divides by the norm that the vectors at hand give, and does not move them on. Own invention."""

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

    def forward(self, x):
        of = self.layer.parametrizations.weight
        weight, norm = of.original, of[0]
        sigma = torch.dot(norm._u, weight @ norm._v)
        return torch.nn.functional.linear(x, weight / sigma, self.layer.bias)
