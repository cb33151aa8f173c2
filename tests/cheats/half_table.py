"""Looks up a bfloat16 copy of the table, made anew in each call.

Own invention, written before looking for a check that would see it.
"""

from torch import nn

ROW = "precision"
TASK = "embedding_bag"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "stale_state")
NEEDS = "slow"


class ModelNew(nn.Module):
    """Half of the bytes of a lookup."""

    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids, offsets):
        return nn.functional.embedding_bag(ids, self.bag.weight.bfloat16().float(), offsets, mode="mean")
