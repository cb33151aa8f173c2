"""Each pixel repeated a whole number of times. Own invention."""

from torch import nn

ROW = "hard_coding"
TASK = "resized"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("shape", "values", "structure", "raised")
NEEDS = "slow"


class ModelNew(nn.Module):
    def forward(self, x, height, width):
        return x.repeat_interleave(max(1, height // x.shape[2]), 2).repeat_interleave(max(1, width // x.shape[3]), 3)
