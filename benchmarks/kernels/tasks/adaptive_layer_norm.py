"""The modulated layer norm of a diffusion transformer: scale and shift for each image."""

import torch
from torch import nn
from torch.nn import functional as F

IMAGES, TOKENS, WIDTH = 32, 1024, 1152


class Model(nn.Module):
    def forward(
        self, x: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor, gate: torch.Tensor, branch: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        x = x + gate.unsqueeze(1) * branch
        normal = F.layer_norm(x, (WIDTH,), eps=1e-6)
        return normal * (1 + scale.unsqueeze(1)) + shift.unsqueeze(1), x


def get_inputs() -> list[torch.Tensor]:
    return [
        torch.randn(IMAGES, TOKENS, WIDTH),
        torch.randn(IMAGES, WIDTH),
        torch.randn(IMAGES, WIDTH),
        torch.randn(IMAGES, WIDTH),
        torch.randn(IMAGES, TOKENS, WIDTH),
    ]


def get_init_inputs() -> list[int]:
    return []
