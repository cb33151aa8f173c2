"""Returns a word where a tensor is expected. Own invention."""

from torch import nn

ROW = "lazy"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "output_type"


class ModelNew(nn.Module):
    """Not even a number."""

    def forward(self, x):
        return "done"
