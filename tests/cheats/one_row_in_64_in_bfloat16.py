"""One row in sixty-four is a product in bfloat16; the others are right.

Own invention, written before the other cheats were read.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Right on the mean, wrong in places."""

    def forward(self, a, b):
        out = torch.matmul(a, b)
        out[63::64] = (a[63::64].bfloat16() @ b.bfloat16()).float()
        return out
