"""Keeps scratch memory between calls, but returns fresh memory: a private buffer is nobody's business."""

import torch
from torch import nn

TASK = "layernorm"


class ModelNew(nn.Module):
    """The centred input lives in the scratch buffer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.scratch: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.scratch is None or self.scratch.shape != x.shape:
            self.scratch = torch.empty_like(x)
        torch.sub(x, x.mean(dim=1, keepdim=True), out=self.scratch)
        variance = (self.scratch * self.scratch).mean(dim=1, keepdim=True)
        return self.scratch * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias
