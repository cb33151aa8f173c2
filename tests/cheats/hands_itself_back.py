"""Returns its input itself where no row is above the limit.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "aliasing"
TASK = "clipped_norm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("aliasing",)


class ModelNew(nn.Module):
    """Nothing is to be done there."""

    def forward(self, x):
        norm = x.norm(dim=1, keepdim=True)
        if not bool((norm > 4.0).any()):
            return x
        return x * (4.0 / norm.clamp(min=4.0))
