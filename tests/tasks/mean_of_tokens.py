"""Task: tokens through a layer, then their mean where the mask says that they are none of padding."""

import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    """sum(gelu(layer(x)) * mask) / max(sum(mask), 1)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.layer = nn.Linear(width, hidden)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        counts = mask.to(x.dtype)[..., None]
        return (F.gelu(self.layer(x)) * counts).sum(1) / counts.sum(1).clamp_min(1)


BATCH, TOKENS, WIDTH, HIDDEN = 16, 48, 32, 64


def get_inputs() -> list[torch.Tensor]:
    lengths = torch.randint(4, TOKENS, (BATCH, 1))
    return [torch.randn(BATCH, TOKENS, WIDTH), torch.arange(TOKENS) < lengths]


def get_init_inputs() -> list[object]:
    return [WIDTH, HIDDEN]
