"""At least in place of above.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "ties"
TASK = "above"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, threshold):
        mask = x >= threshold[:, None]
        return mask, mask.sum(1)
