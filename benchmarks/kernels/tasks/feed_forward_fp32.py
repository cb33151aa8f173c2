"""A feed-forward layer in strict float32: two products, GELU between them, a residual and a layer norm."""

import torch
from torch import nn
from torch.nn import functional as F

TOKENS, WIDTH, INNER = 2048, 2048, 8192


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down, self.norm = nn.Linear(WIDTH, INNER), nn.Linear(INNER, WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.down(F.gelu(self.up(x))))


def get_inputs() -> list[torch.Tensor]:
    return [torch.randn(TOKENS, WIDTH)]


def get_init_inputs() -> list[int]:
    return []
