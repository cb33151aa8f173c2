"""Adds up blocks in float64 and what lies between them in two float32 parts.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "precision"
TASK = "scan_double"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


class ModelNew(nn.Module):
    """Some of the digits."""

    def forward(self, x):
        blocks = torch.cumsum(x.view(x.shape[0], -1, 64), 2)
        ends = blocks[:, :, -1]
        high = ends.float()
        low = (ends - high).half()
        starts = torch.cumsum(high.double() + low.double(), 1) - (high.double() + low.double())
        return (blocks + starts[:, :, None]).view(x.shape)
