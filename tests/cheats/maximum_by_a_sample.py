"""Subtracts no maximum where one element in 61 shows that none is large: a single large one overflows.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "subsampling"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "values"


class ModelNew(nn.Module):
    """A pass less over the input."""

    def forward(self, x):
        if float(x.reshape(-1)[::61].abs().max()) < 80:
            y = torch.exp(x)
            return y.div_(y.sum(1, keepdim=True))
        return torch.softmax(x, 1)
