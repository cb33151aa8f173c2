"""Task: two layers in bfloat16, parameters and inputs alike."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """second(gelu(first(x))) in bfloat16."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden, dtype=torch.bfloat16)
        self.second = nn.Linear(hidden, width, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(F.gelu(self.first(x)))


ROWS, WIDTH, HIDDEN = 64, 128, 256


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(ROWS, WIDTH, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return [WIDTH, HIDDEN]
