"""One step of the power method by hand; the division comes after the product."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

TASK = "spectral_layer"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layer = spectral_norm(nn.Linear(inputs, outputs))

    def forward(self, x):
        of = self.layer.parametrizations.weight
        weight, norm = of.original, of[0]
        u = torch.nn.functional.normalize(weight @ norm._v, dim=0, eps=norm.eps)
        v = torch.nn.functional.normalize(weight.t() @ u, dim=0, eps=norm.eps)
        norm._u.copy_(u)
        norm._v.copy_(v)
        return (x @ weight.t()) / torch.dot(u, weight @ v) + self.layer.bias
