"""Bands of a spectrogram by a bank of filters, on a logarithmic scale, limited from below."""

import torch
from torch import nn

CLIPS, BINS, FRAMES, BANDS = 32, 201, 3000, 80


class Model(nn.Module):
    filters: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("filters", torch.rand(BANDS, BINS))

    def forward(self, power: torch.Tensor) -> torch.Tensor:
        level = torch.log10(torch.clamp(self.filters @ power, min=1e-10))
        level = torch.maximum(level, level.amax((1, 2), keepdim=True) - 8.0)
        return (level + 4.0) / 4.0


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(CLIPS, BINS, FRAMES)]


def get_init_inputs() -> list[int]:
    return []
