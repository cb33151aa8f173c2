"""A task whose answers hold -inf by design: the logarithm of a causal attention's shares."""

import torch
from torch import nn


class Model(nn.Module):
    """log_softmax of masked scores, [batch, length, length]."""

    def __init__(self, width: int, length: int) -> None:
        super().__init__()
        self.queries, self.keys = nn.Linear(width, width), nn.Linear(width, width)
        self.register_buffer("mask", torch.ones(length, length).triu(1).bool())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        scores = self.queries(x) @ self.keys(x).transpose(1, 2) / x.shape[-1] ** 0.5
        return torch.log_softmax(scores.masked_fill(self.mask, float("-inf")), -1)


WIDTH, LENGTH = 16, 24


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4, LENGTH, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, LENGTH]
