"""Task: an image of bytes times a gain for each channel, clamped to bytes; the file's own images are never so bright as to be clamped."""

import torch
from torch import nn


class Model(nn.Module):
    """clamp(round(image * gain + shift), 0, 255) as bytes."""

    def forward(self, image: torch.Tensor, gain: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        return torch.clamp(torch.round(image * gain + shift), 0, 255).to(torch.uint8)


CHANNELS, SIZE = 3, 96


def get_inputs() -> list[torch.Tensor]:
    return [torch.randint(16, 200, (CHANNELS, SIZE, SIZE), dtype=torch.uint8), 0.9 + 0.2 * torch.rand(CHANNELS, 1, 1), torch.rand(CHANNELS, 1, 1)]


def get_init_inputs() -> list[object]:
    return []
