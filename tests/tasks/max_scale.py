"""Task: scale 1 and shift 0 at construction: a multiply and an add that seem to do nothing."""

import torch
from torch import nn


class Model(nn.Module):
    """max over 4 neighbours of x, times scale, plus shift, channel by channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(channels, 1))
        self.shift = nn.Parameter(torch.zeros(channels, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool1d(x * self.scale + self.shift, 4)


BATCH, CHANNELS, LENGTH = 16, 32, 1024


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(BATCH, CHANNELS, LENGTH)]


def get_init_inputs() -> list[object]:
    return [CHANNELS]
