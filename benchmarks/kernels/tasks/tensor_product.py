"""Features of atoms mixed by weights of each edge, written as einsum."""

import torch
from torch import nn

EDGES, IN, OUT = 65536, 32, 32


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(IN, OUT, 16) / 16)

    def forward(self, features: torch.Tensor, radial: torch.Tensor) -> torch.Tensor:
        mixed = torch.einsum("ek,iok->eio", radial, self.weight)
        return torch.einsum("eio,ei->eo", mixed, features)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(EDGES, IN), torch.randn(EDGES, 16)]


def get_init_inputs() -> list[int]:
    return []
