"""Task: attention with a mask and positions as inputs, which the file always makes the same."""

import torch
from torch import nn


class Model(nn.Module):
    """softmax(rotate(q) @ rotate(k)^T + mask) @ v."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        angle = positions.to(q.dtype)[:, None] * 0.1
        turn = lambda x: x * torch.cos(angle) + x.roll(x.shape[-1] // 2, -1) * torch.sin(angle)  # noqa: E731
        scores = turn(q) @ turn(k).transpose(-1, -2) * q.shape[-1] ** -0.5
        return torch.softmax(scores.masked_fill(~mask, -1e9), -1) @ v


HEADS, LENGTH, WIDTH = 4, 64, 32


def get_inputs() -> list[torch.Tensor]:
    return [*(torch.randn(HEADS, LENGTH, WIDTH) for _ in range(3)), torch.ones(LENGTH, LENGTH).tril().bool(), torch.arange(LENGTH)]


def get_init_inputs() -> list[object]:
    return []
