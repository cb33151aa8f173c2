"""A thread of its own launches the product when the call has answered: there is no kernel for the device's wait to wait for.

Own invention.
"""

import queue
import threading
import time

import torch
from torch import nn

ROW = "later"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output", "values", "uninitialised",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """The thread waits for work, and a tenth of a millisecond more."""

    def __init__(self):
        super().__init__()
        self.queue = queue.SimpleQueue()
        threading.Thread(target=self.work, daemon=True).start()

    def work(self):
        while True:
            a, b, out = self.queue.get()
            end = time.perf_counter() + 1e-4
            while time.perf_counter() < end:
                time.sleep(0)
            torch.mm(a, b, out=out)

    def forward(self, a, b):
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        self.queue.put((a, b, out))
        return out
