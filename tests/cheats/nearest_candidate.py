"""The argmax of rounded values: near ties go wrong.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "ties"
TASK = "argmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """Half of the bytes to compare."""

    def forward(self, x):
        return torch.argmax(x.bfloat16().float(), dim=1)
