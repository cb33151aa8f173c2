"""Layer scale, residual and layer norm of a vision transformer, 577 tokens."""

import torch
from torch import nn

IMAGES, TOKENS, WIDTH = 64, 577, 1024


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(WIDTH) * 0.1)
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor, branch: torch.Tensor) -> torch.Tensor:
        return self.norm(x + branch * self.scale)


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(IMAGES, TOKENS, WIDTH), torch.randn(IMAGES, TOKENS, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
