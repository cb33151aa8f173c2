"""Leaves a stream of its own current: what the caller launches next runs beside what it waits for.

Own invention.
"""

import torch
from torch import nn

ROW = "flags"
TASK = "tiny"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("global_flags",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """torch.cuda.set_stream, never set back."""

    def __init__(self):
        super().__init__()
        self.side = None

    def forward(self, x, y):
        self.side = self.side or torch.cuda.Stream()
        torch.cuda.set_stream(self.side)
        return x * y + 1
