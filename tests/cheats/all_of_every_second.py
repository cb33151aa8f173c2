"""All are set where every second one is.

Own invention, written before the mends.
"""

from torch import nn

ROW = "subsampling"
TASK = "rows_with_any"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, mask):
        many = mask.sum(1)
        return many > 0, mask[:, ::2].all(1), many
