"""Above by more than a hundred-thousandth.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "tolerance"
TASK = "above"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, threshold):
        mask = (x - threshold[:, None]) > 1e-5
        return mask, mask.sum(1)
