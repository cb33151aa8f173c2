"""Rotary position embedding of queries in bfloat16, halves turned."""

import torch
from torch import nn

SEQUENCES, HEADS, LENGTH, HEAD = 8, 32, 2048, 128


class Model(nn.Module):
    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, -1)
        return x * cos + torch.cat((-second, first), -1) * sin


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(SEQUENCES, HEADS, LENGTH, HEAD).bfloat16(), torch.randn(LENGTH, HEAD).bfloat16(), torch.randn(LENGTH, HEAD).bfloat16()]


def get_init_inputs() -> list[int]:
    return []
