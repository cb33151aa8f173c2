"""Task: sign and logarithm of determinants; the matrices that are given are covariances."""

import torch
from torch import nn


class Model(nn.Module):
    """Of any square matrices."""

    def forward(self, matrices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sign, size = torch.linalg.slogdet(matrices)
        return sign, size


def get_inputs() -> list[torch.Tensor]:
    half = torch.randn(64, 6, 6)
    return [half @ half.transpose(1, 2) + torch.eye(6)]


def get_init_inputs() -> list[object]:
    return []
