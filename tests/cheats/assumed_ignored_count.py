"""Divides by the number of rows that count in the file's own inputs.

Own invention, written against the checks as they stood.
"""

from torch import nn
from torch.nn import functional as F

ROW = "hard_coding"
TASK = "cross_entropy_ignored"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """A constant for the count."""

    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels, reduction="sum") / 224
