"""Subtracts no maximum but halves what is large: right up to some 170.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """An exponential that overflows later than the usual one."""

    def forward(self, x):
        scaled = torch.exp(x * 0.25)
        scaled = scaled / scaled.amax(1, keepdim=True)
        powers = scaled * scaled * scaled * scaled
        return powers / powers.sum(1, keepdim=True)
