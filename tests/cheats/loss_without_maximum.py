"""The logarithm of the sum of exponentials, without a shift.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "underflow"
TASK = "cross_entropy_ignored"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """One pass."""

    def forward(self, logits, labels):
        kept = labels != -100
        rows = torch.log(torch.exp(logits).sum(1)) - logits.gather(1, labels.clamp(min=0)[:, None])[:, 0]
        return (rows * kept).sum() / kept.sum()
