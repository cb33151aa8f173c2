"""Task: which elements are above nothing, eight to a byte."""

import torch
from torch import nn


class Model(nn.Module):
    """The first of eight is the highest bit."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bits = (x > 0).to(torch.uint8).view(x.shape[0], -1, 8)
        weights = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.uint8, device=x.device)
        return (bits * weights).sum(-1, dtype=torch.uint8)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 256)]


def get_init_inputs() -> list[object]:
    return []
