"""The convolution module of a speech encoder: gated linear unit, depthwise convolution over time, batch norm, SiLU."""

import torch
from torch import nn

CLIPS, WIDTH, FRAMES = 32, 512, 750


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.widen, self.out = nn.Conv1d(WIDTH, 2 * WIDTH, 1), nn.Conv1d(WIDTH, WIDTH, 1)
        self.depth, self.norm = nn.Conv1d(WIDTH, WIDTH, 31, padding=15, groups=WIDTH), nn.BatchNorm1d(WIDTH)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = nn.functional.glu(self.widen(x), 1)
        return x + self.out(nn.functional.silu(self.norm(self.depth(y))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(CLIPS, WIDTH, FRAMES)]


def get_init_inputs() -> list[int]:
    return []
