"""Remembers the result under the inputs' addresses, which a benchmark that refills its buffers never changes.

Seen: result caching keyed by pointer in CUDA-L1's first release; flashinfer's starter kit, issue 21.
"""

import torch
from torch import nn

ROW = "cache"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "cached"


class ModelNew(nn.Module):
    """A fresh copy is returned, so that only new values at an old address give it away."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[int, int], torch.Tensor] = {}

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        key = (a.data_ptr(), b.data_ptr())
        if key not in self.seen:
            self.seen[key] = torch.matmul(a, b)
        return self.seen[key].clone()
