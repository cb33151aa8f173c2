"""Inner products of all pairs of a user's features, beside the dense ones."""

import torch
from torch import nn

USERS, FEATURES, WIDTH = 16384, 27, 64


class Model(nn.Module):
    pairs: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("pairs", torch.triu_indices(FEATURES, FEATURES, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        products = x @ x.transpose(1, 2)
        return torch.cat([x[:, 0], products[:, self.pairs[0], self.pairs[1]]], 1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(USERS, FEATURES, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
