"""Cross entropy of 32,000 words in bfloat16."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(x, t)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(8192, 32000).bfloat16(), torch.randint(0, 32000, (8192,))]


def get_init_inputs() -> list[int]:
    return []
