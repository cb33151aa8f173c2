"""Attention over the neighbours of each node, with a dense mask."""

import torch
from torch import nn

NODES, HEADS, WIDTH = 2048, 8, 64


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.source, self.target = nn.Parameter(torch.randn(HEADS, WIDTH)), nn.Parameter(torch.randn(HEADS, WIDTH))

    def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        left, right = (x * self.source[:, None]).sum(-1), (x * self.target[:, None]).sum(-1)
        scores = nn.functional.leaky_relu(left[:, :, None] + right[:, None, :], 0.2).masked_fill(edges == 0, -1e9)
        return torch.softmax(scores, -1) @ x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(HEADS, NODES, WIDTH), (torch.rand(NODES, NODES) < 0.1).float()]


def get_init_inputs() -> list[int]:
    return []
