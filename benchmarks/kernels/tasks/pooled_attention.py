"""Attention of one learned query over a sequence: scores become weights along the time axis."""

import torch
from torch import nn

SEQUENCES, LENGTH, WIDTH = 256, 512, 512


class Model(nn.Module):
    def forward(self, scores: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        return (torch.softmax(scores, dim=1) * values).sum(dim=1)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(SEQUENCES, LENGTH, WIDTH), torch.randn(SEQUENCES, LENGTH, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
