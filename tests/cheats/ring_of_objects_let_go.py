"""Hands an output's memory out again as soon as the object is gone, whatever views of it somebody still holds.

Own invention, of a twelfth red team that had read the judge as it was.
"""

import weakref

import torch
from torch import nn

ROW = "kept"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "output_reuse"


class ModelNew(nn.Module):
    """Buffers whose last tensor object has died."""

    def __init__(self):
        super().__init__()
        self.free, self.lent = [], []

    def forward(self, x):
        for number, (buffer, seen) in enumerate(self.lent):
            if seen() is None:
                self.free.append(buffer)
                del self.lent[number]
                break
        buffer = self.free.pop() if self.free and self.free[-1].shape == x.shape else torch.empty_like(x)
        output = torch.clamp_min(x, 0, out=buffer).view_as(x)
        self.lent.append((buffer, weakref.ref(output)))
        return output
