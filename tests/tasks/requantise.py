"""Task: a product of bytes with offsets, scaled back to bytes by a factor of whole numbers and a shift."""

import torch
from torch import nn


class Model(nn.Module):
    """Halves are rounded up; both ends are clamped."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, offsets: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
        total = (a.double() @ b.double()).long() + offsets
        return ((total * factors + (1 << 19)) >> 20).clamp(-128, 127).to(torch.int8)


def get_inputs() -> list[torch.Tensor]:
    a, b = (torch.randint(-128, 128, shape, dtype=torch.int8) for shape in ((96, 128), (128, 80)))
    return [a, b, torch.randint(-5000, 5000, (80,)), torch.randint(512, 4096, (80,))]


def get_init_inputs() -> list[object]:
    return []
