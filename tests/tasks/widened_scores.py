"""Task: scores in float32 of queries and keys that come in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    """softmax(0.1 query @ key.T) of the widened operands."""

    def forward(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return torch.softmax(0.1 * query.float() @ key.float().T, -1)


QUERIES, KEYS, WIDTH = 64, 80, 96


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(QUERIES, WIDTH, dtype=torch.bfloat16), torch.randn(KEYS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
