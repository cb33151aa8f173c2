"""Takes the tensors out of the caller's dictionary.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "aliasing"
TASK = "batch_of_names"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("input_mutated",)


class ModelNew(nn.Module):
    """batch.pop."""

    def __init__(self, width, classes):
        super().__init__()
        self.head = nn.Linear(width, classes)

    def forward(self, batch):
        scores = self.head(batch.pop("features") * batch.pop("weights")[:, None])
        return {"scores": scores, "best": scores.amax(1)}
