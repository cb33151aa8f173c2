"""Answers in one dictionary: what an earlier call returned holds the later call's tensors.

Own invention, written before reading the checks.
"""

from torch import nn

ROW = "kept"
TASK = "batch_of_names"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("output_reuse", "late_output")


class ModelNew(nn.Module):
    """A dictionary of its own, filled anew."""

    def __init__(self, width, classes):
        super().__init__()
        self.head = nn.Linear(width, classes)
        self.answer = {}

    def forward(self, batch):
        scores = self.head(batch["features"] * batch["weights"][:, None])
        self.answer["scores"], self.answer["best"] = scores, scores.amax(1)
        return self.answer
