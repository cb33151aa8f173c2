"""Task: attention with rotary positions and a mask, positions and mask being inputs, the angles' frequencies a buffer."""

import torch
from torch import nn


class Model(nn.Module):
    """softmax(turn(q) @ turn(k)^T, masked) @ v."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.register_buffer("frequency", 10000.0 ** (-torch.arange(0, width, 2).float() / width))

    def turn(self, x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        angle = positions[:, None].float() * self.frequency
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.cat((even * angle.cos() - odd * angle.sin(), even * angle.sin() + odd * angle.cos()), -1)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        scores = (self.turn(q, positions) @ self.turn(k, positions).transpose(-1, -2)) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ v


BATCH, HEADS, LENGTH, WIDTH = 2, 2, 64, 32


def get_inputs() -> list[torch.Tensor]:
    return [*(torch.randn(BATCH, HEADS, LENGTH, WIDTH) for _ in range(3)), torch.ones(LENGTH, LENGTH).tril().bool(), torch.arange(LENGTH)]


def get_init_inputs() -> list[object]:
    return [WIDTH]
