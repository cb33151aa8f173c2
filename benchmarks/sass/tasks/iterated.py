"""A task for `optimize --polish`: steps of arithmetic on each number, which eager runs in some thirty kernels and a fused kernel of ours in one.

That one is bound by arithmetic, so that its schedule may matter; the step is a contraction, so that rounding does not grow.
"""

import torch
from torch import nn

STEPS = 6


class Model(nn.Module):
    """Six steps of x <- sin(x) / 2 + tanh(x) sigmoid(x) / 4 + y."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(STEPS):
            x = torch.sin(x) * 0.5 + torch.tanh(x) * torch.sigmoid(x) * 0.25 + y
        return x


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(4096, 2048), torch.randn(4096, 2048)]


def get_init_inputs() -> list[int]:
    return []
