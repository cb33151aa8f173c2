"""Gives fresh memory each time, but writes into earlier results at a later call.

Own invention: distinct addresses alone do not make results safe.
"""

import torch
from torch import nn

ROW = "kept"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "output_reuse"


class ModelNew(nn.Module):
    """Keeps the last result and spoils one element of it at the next call."""

    def __init__(self) -> None:
        super().__init__()
        self.last: torch.Tensor | None = None

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        if self.last is not None:
            self.last[0, 0] = 0.0
        self.last = torch.matmul(a, b)
        return self.last
