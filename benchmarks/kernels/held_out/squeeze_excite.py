"""Channel attention: mean over places, two small layers, a gate."""

import torch
from torch import nn

IMAGES, CHANNELS, SIZE = 128, 256, 28


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(CHANNELS, CHANNELS // 16), nn.Linear(CHANNELS // 16, CHANNELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = torch.sigmoid(self.up(torch.relu(self.down(x.mean((2, 3))))))
        return torch.relu(x * gate[:, :, None, None])


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(IMAGES, CHANNELS, SIZE, SIZE)]


def get_init_inputs() -> list[int]:
    return []
