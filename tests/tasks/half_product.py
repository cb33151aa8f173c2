"""Task: a product in bfloat16."""

import torch
from torch import nn


class Model(nn.Module):
    """a @ b."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(128, 256, dtype=torch.bfloat16), torch.randn(256, 128, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
