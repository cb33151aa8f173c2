"""Means lie in a buffer that the next call writes over, and are handed out as a view of it.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "kept"
TASK = "row_statistics"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "output_reuse"
NEEDS = "slow"


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.keep = None

    def forward(self, x):
        if self.keep is None or self.keep.shape[0] != x.shape[0]:
            self.keep = torch.empty(x.shape[0], 1, device=x.device)
        torch.mean(x, 1, keepdim=True, out=self.keep)
        best, where = x.max(1)
        return self.keep.expand(x.shape[0], 1).view(-1, 1), best, where, x - self.keep
