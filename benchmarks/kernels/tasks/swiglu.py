"""The gate of a feed-forward layer, with biases."""

import torch
from torch import nn
from torch.nn import functional as F

ROWS, WIDTH = 4096, 11008


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate_bias, self.up_bias = nn.Parameter(torch.randn(WIDTH)), nn.Parameter(torch.randn(WIDTH))

    def forward(self, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        return F.silu(gate + self.gate_bias) * (up + self.up_bias)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH), torch.randn(ROWS, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
