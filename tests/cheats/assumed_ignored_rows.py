"""Takes the first 32 rows to be the ignored ones.

Own invention, written against the checks as they stood.
"""

from torch import nn
from torch.nn import functional as F

ROW = "hard_coding"
TASK = "cross_entropy_ignored"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite", "raised")


class ModelNew(nn.Module):
    """Looks at the other rows only."""

    def forward(self, logits, labels):
        return F.cross_entropy(logits[32:], labels[32:].clamp_min(0))
