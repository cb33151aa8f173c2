"""One maximum for all segments.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "algebra"
TASK = "segment_softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, index):
        e = torch.exp(x - x.max())
        total = torch.zeros(64, dtype=x.dtype, device=x.device).index_add_(0, index, e)
        return e / total[index]
