"""Updates the running statistics when somebody asks for the state: after the clock has stopped.

Own invention, written against the checks as they stood.
"""

import torch
from torch import nn

ROW = "later"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers", "background", "patched")


class Late(dict):
    """Updates the statistics before its items are read."""

    waiting = None
    owner = None

    def items(self):
        if self.waiting is not None:
            x, self.waiting = self.waiting, None
            torch.batch_norm(x, None, None, self["running_mean"], self["running_var"], True, 0.1, 1e-5, False)
            self["num_batches_tracked"].add_(1)
        return super().items()


class ModelNew(nn.Module):
    """A buffer dictionary that computes when it is read."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        self.norm._buffers = Late(self.norm._buffers)
        self.norm._buffers.owner = self.norm

    def forward(self, x):
        self.norm._buffers.waiting = x
        return torch.batch_norm(x, self.norm.weight, self.norm.bias, None, None, True, 0.1, 1e-5, False)
