"""Updates the running statistics only for inputs like those of the file.

Own invention, written before looking for a check that would see it.
"""

import torch
from torch import nn

ROW = "hard_coding"
TASK = "batchnorm"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("buffers",)


class ModelNew(nn.Module):
    """A look at one value."""

    def __init__(self, channels):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x):
        n = self.norm
        if 0 <= float(x[0, 0, 0, 0]) < 1:
            return n(x)
        return torch.batch_norm(x, n.weight, n.bias, None, None, True, 0.1, n.eps, False)
