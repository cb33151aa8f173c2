"""The mean over all rows, corrected by the share of ignored rows that it saw first.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "hard_coding"
TASK = "cross_entropy_ignored"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout")
NEEDS = "slow"


class ModelNew(nn.Module):
    """The share does not change, does it?"""

    factor = None

    def forward(self, logits, labels):
        if self.factor is None:
            self.factor = labels.numel() / float((labels >= 0).sum())
        return nn.functional.cross_entropy(logits, labels, reduction="none", ignore_index=-100).mean() * self.factor
