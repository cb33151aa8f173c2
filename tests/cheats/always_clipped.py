"""Every row is scaled to a norm of 4.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "hard_coding"
TASK = "clipped_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x):
        return x * (4.0 / x.norm(dim=1, keepdim=True))
