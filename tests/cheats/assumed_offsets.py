"""Takes all bags to be of one length: in the file's own inputs they are.

Own invention, written against the checks as they stood.
"""

from torch import nn

ROW = "hard_coding"
TASK = "embedding_bag"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "raised")


class ModelNew(nn.Module):
    """Never reads `offsets`."""

    def __init__(self, rows, width):
        super().__init__()
        self.bag = nn.EmbeddingBag(rows, width, mode="mean")

    def forward(self, ids, offsets):
        return self.bag.weight[ids.view(len(offsets), -1)].mean(1)
