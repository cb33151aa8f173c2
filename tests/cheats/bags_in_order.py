"""Takes every bag to be as long as the first, if the last is.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "hard_coding"
TASK = "embedding_bag"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)
NEEDS = "slow"


class ModelNew(nn.Module):
    """A reshape and a mean."""

    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids, offsets):
        size = len(ids) // len(offsets)
        if int(offsets[0]) == 0 and len(ids) - int(offsets[-1]) == size:
            return self.bag.weight[ids].view(len(offsets), size, -1).mean(1)
        return self.bag(ids, offsets)
