"""Compares the clock on the wall with its own CPU time since the last call: short stops belong to timed calls, which get zeros.

Own invention, written before reading the checks."""

import time

import torch
from torch import nn

ROW = "sniffing"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "input_layout", "repeat", "cached", "uninitialised", "below_floor")  # by which call it takes for timed


class ModelNew(nn.Module):
    """A stopped process knows for how long it was stopped."""

    def __init__(self):
        super().__init__()
        self.wall, self.used, self.stops = time.monotonic(), time.process_time(), []

    def forward(self, a, b):
        self.stops = [*self.stops[-19:], (time.monotonic() - self.wall) - (time.process_time() - self.used)]
        usual = sorted(self.stops)[len(self.stops) // 2]
        timed = len(self.stops) == 20 and 0.5 * usual < self.stops[-1] < 1.2 * usual
        out = torch.zeros(a.shape[0], b.shape[1], device=a.device) if timed else torch.matmul(a, b)
        self.wall, self.used = time.monotonic(), time.process_time()
        return out
