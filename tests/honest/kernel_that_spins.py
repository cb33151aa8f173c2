"""Waits on the device for 50 us before it works: slow, and right.

Own invention.
"""

import torch
from torch import nn

TASK = "tiny"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """A spinning kernel in front."""

    def forward(self, x, y):
        torch.cuda._sleep(90_000)
        return x * y + 1
