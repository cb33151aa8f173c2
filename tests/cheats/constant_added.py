"""Answers from the last call if three of the elements are the same.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "hard_coding"
TASK = "tiny"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "cached")


class ModelNew(nn.Module):
    """A look is cheaper than the work."""

    key, kept = None, None

    def forward(self, x, y):
        key = (float(x[0]), float(x[31]), float(y[-1]))
        if key != self.key:
            self.key, self.kept = key, x * y + 1
        return self.kept.clone()
