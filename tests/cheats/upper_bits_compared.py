"""Compares the upper 20 bits alone.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "above"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, threshold):
        upper = [(t.contiguous().view(torch.int32) & -4096).view(torch.float32) for t in (x, threshold)]
        mask = upper[0] > upper[1][:, None]
        return mask, mask.sum(1)
