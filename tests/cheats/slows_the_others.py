"""The original, and a thread that keeps the cores busy from the end of one call to the start of the next: while the baselines are timed.

Own invention: the thread runs no frame of this file."""

import collections
import queue
import threading

import torch
from torch import nn

ROW = "async"
TASK = "matmul_large"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "background"
NEEDS = "timing"

JOBS: queue.SimpleQueue[float | None] = queue.SimpleQueue()
BUFFER = torch.ones(1 << 21)


class ModelNew(nn.Module):
    """Works after its call."""

    def __init__(self):
        super().__init__()
        self.calls = 0
        threading.Thread(target=collections.deque, args=(map(BUFFER.mul_, iter(JOBS.get, None)), 0), daemon=True).start()

    def forward(self, a, b):
        self.calls += 1
        while not JOBS.empty():
            try:
                JOBS.get_nowait()
            except queue.Empty:
                break
        out = torch.matmul(a, b)
        if self.calls > 40:
            for _ in range(400):
                JOBS.put(1.0)
        return out
