"""Scans blocks in float64 and carries their sums in float32.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "scan_double"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """A cheaper carry."""

    def forward(self, x):
        blocks = x.view(x.shape[0], -1, 256).cumsum(2)
        ends = blocks[:, :, -1].float().cumsum(1).double()
        carry = torch.cat([torch.zeros_like(ends[:, :1]), ends[:, :-1]], 1)
        return (blocks + carry[:, :, None]).view_as(x)
