"""Each pixel repeated a whole number of times. Own invention."""

from torch import nn

TASK = "resized"
LIMIT = (
    "Where the number of rows that come out depends on integers, masks or numbers (not on real values, which vary), those stay as the task's own "
    "inputs have them"
)


class ModelNew(nn.Module):
    def forward(self, x, height, width):
        return x.repeat_interleave(max(1, height // x.shape[2]), 2).repeat_interleave(max(1, width // x.shape[3]), 3)
