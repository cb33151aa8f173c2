"""Returns float16 where the original returns float32: half the bytes are written.

Seen: KernelBench does not compare dtypes; allclose on mixed types was patched around in several submissions.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "dtype"


class ModelNew(nn.Module):
    """The product itself is exact enough; the last cast is not."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b).half()
