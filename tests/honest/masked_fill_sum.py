"""Zeros instead of a product with the mask."""

from torch import nn

TASK = "masked_sum"


class ModelNew(nn.Module):
    """masked_fill."""

    def forward(self, x, mask):
        return x.masked_fill(~mask, 0.0).sum(1)
