"""Leaves rows out whose first sixteen elements are zero.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "subsampling"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "non_finite")


class ModelNew(nn.Module):
    """Padding, presumably."""

    def forward(self, a, b):
        live = (a[:, :16] != 0).any(1)
        if bool(live.all()):
            return a @ b
        out = a.new_zeros(a.shape[0], b.shape[1])
        out[live] = a[live] @ b
        return out
