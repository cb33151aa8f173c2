"""Works the norm out in float32 where that does not overflow.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "underflow"
TASK = "double_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Half of the bandwidth, most of the time."""

    def forward(self, x):
        if float(x.abs().max()) < 100:
            return torch.linalg.vector_norm(x.float(), dim=1).double()
        return torch.linalg.vector_norm(x, dim=1)
