"""Integer sums of products by four exact float32 products of bytes.

Own invention.
"""

from torch import nn

TASK = "integer_sums"
NEEDS = "slow"

class ModelNew(nn.Module):
    """Digits of eight bits: every product of a row stays below 2^24."""

    def forward(self, a, b):
        low, high = (a & 255).float(), (a >> 8).float()
        below, above = (b & 255).float(), (b >> 8).float()
        total = (low @ below).long() + ((low @ above).long() + (high @ below).long()) * 256
        return total + (high @ above).long() * 65536
