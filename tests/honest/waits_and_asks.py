"""Asks for the memory in use, records events and waits for the device in each call, as a cautious program does.

Own invention.
"""

import torch
from torch import nn

TASK = "softmax"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Slow and right."""

    def forward(self, x):
        begun, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begun.record()
        y = torch.softmax(x, dim=1)
        ended.record()
        ended.synchronize()
        self.milliseconds, self.bytes = begun.elapsed_time(ended), torch.cuda.memory_allocated()
        return y
