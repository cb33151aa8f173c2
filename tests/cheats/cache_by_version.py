"""Remembers the result under address and `_version`: a harness that refills its buffers outside of autograd does not raise the version.

Seen: KernelBench issue 171 and its follow-ups, which proposed `_version` as the remedy.
"""

import torch
from torch import nn

ROW = "cache"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "cached"


class ModelNew(nn.Module):
    """New values must come with what a tensor's own bookkeeping cannot tell."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[tuple[int, ...], torch.Tensor] = {}

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        key = (a.data_ptr(), a._version, b.data_ptr(), b._version)
        if key not in self.seen:
            self.seen[key] = torch.matmul(a, b)
        return self.seen[key].clone()
