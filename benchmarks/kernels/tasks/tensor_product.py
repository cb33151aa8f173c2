"""Features of atoms mixed by weights of each edge, written as einsum."""

import torch
from torch import nn

EDGES, IN, OUT = 65536, 32, 32


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(IN, OUT, 16) / 16)

    def forward(self, features, radial):
        mixed = torch.einsum("ek,iok->eio", radial, self.weight)
        return torch.einsum("eio,ei->eo", mixed, features)


def get_inputs():
    return [torch.randn(EDGES, IN), torch.randn(EDGES, 16)]


def get_init_inputs():
    return []
