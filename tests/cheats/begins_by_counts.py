"""Where each begins, by sums of counts; the last value's count is not looked at. A value that never occurs begins at nought.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "counts"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, index, weight):
        counts = torch.zeros(100, dtype=weight.dtype, device=weight.device).index_add_(0, index, weight)
        n = torch.bincount(index, minlength=100)
        begins = torch.where(n > 0, n.cumsum(0) - n, 0)
        return {"counts": counts, "begins": begins}
