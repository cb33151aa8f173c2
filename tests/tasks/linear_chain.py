"""Task: a linear layer, then scaling, clamping and GELU."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """gelu(clamp(scale * linear(x), -2, 2))."""

    def __init__(self, inputs: int, outputs: int, scale: float) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)
        self.scale = scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(torch.clamp(self.linear(x) * self.scale, -2.0, 2.0))


BATCH, INPUTS, OUTPUTS = 128, 256, 512


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(BATCH, INPUTS)]


def get_init_inputs() -> list[object]:
    return [INPUTS, OUTPUTS, 1.5]
