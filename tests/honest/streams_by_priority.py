"""Two halves on streams of different priority, joined by events.

Own invention.
"""

import torch
from torch import nn

TASK = "matmul"
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Both are waited for by the stream that the caller uses."""

    def __init__(self):
        super().__init__()
        self.sides = None

    def forward(self, a, b):
        if self.sides is None:
            self.sides = [torch.cuda.Stream(priority=priority) for priority in (0, -1)]
        here, half, halves = torch.cuda.current_stream(), a.shape[0] // 2, []
        begun = here.record_event()
        for side, rows in zip(self.sides, (a[:half], a[half:]), strict=True):
            side.wait_event(begun)
            with torch.cuda.stream(side):
                halves.append(rows @ b)
            here.wait_event(side.record_event())
        return torch.cat(halves)
