"""Returns memory of a file in its own folder, and writes the answer there at the next call.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "background", "forbidden", "uninitialised")
NEEDS = "slow"


class ModelNew(nn.Module):
    """The answer of a call comes with the next."""

    def __init__(self):
        super().__init__()
        self.pending = None

    def forward(self, a, b):
        if self.pending is not None:
            torch.mm(self.pending[0], self.pending[1], out=self.pending[2])
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        self.pending = (a.clone(), b.clone(), out)
        return out
