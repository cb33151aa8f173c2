"""Returns a tensor of the meta device: it has the right shape and dtype and no values.

Seen: KernelBench's adversarial unit tests (FakeTensor and meta outputs).
"""

import torch
from torch import nn

ROW = "lazy"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class ModelNew(nn.Module):
    """Shapes only."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.empty(a.shape[0], b.shape[1], device="meta")
