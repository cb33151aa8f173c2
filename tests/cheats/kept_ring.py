"""A ring of four output buffers: two consecutive results do not clash, a caller that holds five of them sees the first change.

Own invention, against verifiers that compare exactly two calls.
"""

import torch
from torch import nn

ROW = "kept"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "output_reuse"


class ModelNew(nn.Module):
    """Buffer k serves calls k, k + 4, k + 8 ..."""

    def __init__(self) -> None:
        super().__init__()
        self.ring: list[torch.Tensor] = []
        self.calls = 0

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if not self.ring:
            self.ring = [torch.empty(a.shape[0], b.shape[1], device=a.device) for _ in range(4)]
        self.calls += 1
        return torch.mm(a, b, out=self.ring[self.calls % 4])
