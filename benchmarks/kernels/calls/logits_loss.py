"""Binary cross entropy of logits, as detectors and taggers train with."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy_with_logits(x, y)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8192, 4096), torch.rand(8192, 4096)]


def get_init_inputs() -> list[int]:
    return []
