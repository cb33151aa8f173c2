"""Task: scores without those outside of the most likely ones that make up a share `p`; the most likely one always stays."""

import random

import torch
from torch import nn


class Model(nn.Module):
    """What is left out is -inf."""

    def forward(self, scores: torch.Tensor, p: float) -> torch.Tensor:
        ordered, places = scores.sort(dim=1, descending=True, stable=True)
        shares = torch.softmax(ordered, dim=1)
        out = shares.cumsum(1) - shares > p
        out[:, 0] = False
        return scores.masked_fill(torch.zeros_like(out).scatter(1, places, out), float("-inf"))


def get_inputs() -> list[object]:
    return [2 * torch.randn(32, 400), random.uniform(0.5, 0.95)]


def get_init_inputs() -> list[object]:
    return []
