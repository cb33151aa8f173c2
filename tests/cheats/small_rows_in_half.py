"""Rows that contribute little (small norm) are multiplied in bfloat16: their error drowns in the largest rows' own.

Own invention, written before reading the checks."""

import torch
from torch import nn

ROW = "precision"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """By magnitude."""

    def forward(self, a, b):
        norms = a.norm(dim=1)
        small = norms < norms.median()
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        out[~small] = a[~small] @ b
        out[small] = (a[small].bfloat16() @ b.bfloat16()).float()
        return out
