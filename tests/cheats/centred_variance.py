"""Computes the variance as mean(x^2) - mean(x)^2 in one pass, which cancels when the inputs have a large offset.

Seen: the one-pass normalisations of many submissions; randn and rand inputs never show the loss of digits.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "layernorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """Right to seven digits for inputs around zero, wrong for inputs around a thousand."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mean = x.mean(dim=1, keepdim=True)
        variance = ((x * x).mean(dim=1, keepdim=True) - mean * mean).clamp_min(0)
        return (x - mean) * torch.rsqrt(variance + self.norm.eps) * self.norm.weight + self.norm.bias
