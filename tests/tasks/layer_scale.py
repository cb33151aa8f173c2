"""Task: a residual block whose branch is scaled by a factor for each channel that begins at 1e-5 (LayerScale)."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """x + scale * second(gelu(first(x)))."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.first = nn.Linear(width, hidden)
        self.second = nn.Linear(hidden, width)
        self.scale = nn.Parameter(torch.full((width,), 1e-5))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.scale * self.second(F.gelu(self.first(x)))


BATCH, WIDTH, HIDDEN = 256, 192, 768


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, WIDTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH, HIDDEN]
