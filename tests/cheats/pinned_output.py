"""The answer is a pinned tensor of the host, which kernels can write to: as fast as the bus.

Own invention.
"""

import torch
from torch import nn

ROW = "layout"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("device",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """A tensor that CUDA knows and that is not on the device."""

    def forward(self, x):
        out = torch.empty(x.shape, pin_memory=True, device="cpu")
        out.copy_(torch.relu(x), non_blocking=True)
        return out
