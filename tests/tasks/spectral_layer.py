"""Task: a linear layer under spectral normalisation, in training: each call moves the two vectors on."""

import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm


class Model(nn.Module):
    """x @ (W / sigma(W))^T + b."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.layer = spectral_norm(nn.Linear(inputs, outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


mode = "train"


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(64, 96)]


def get_init_inputs() -> list[object]:
    return [96, 128]
