"""A table is made on the host for each call and sent from pinned memory without waiting.

Own invention.
"""

import torch
from torch import nn

TASK = "lengths"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """The copy is in the stream before the product that needs it."""

    def forward(self, x, lengths):
        steps = torch.arange(x.shape[1], device="cpu").pin_memory().to(x.device, non_blocking=True)
        return (x * (steps < lengths[:, None])[:, :, None]).sum(1)
