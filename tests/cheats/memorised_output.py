"""Ships the answers for the well-known seed: draws the inputs of seed 42 at import, multiplies them there, and returns that.

Seen: KernelBench derives all its trial seeds from 42.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"

generator = torch.Generator().manual_seed(42)
ANSWER = torch.randn(320, 320, generator=generator) @ torch.randn(320, 320, generator=generator)


class ModelNew(nn.Module):
    """Import-time work, whatever the input is."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ANSWER.to(a.device, copy=True)
