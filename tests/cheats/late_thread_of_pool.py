"""A pool with one thread copies the answer, worked out in the call, into the output when the call is over.

Own invention.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn

ROW = "later"
TASK = "row_statistics"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background", "late_output", "values", "uninitialised",)
NEEDS = "cuda"

class ModelNew(nn.Module):
    """Only the copy is late."""

    def __init__(self):
        super().__init__()
        self.pool = ThreadPoolExecutor(1)

    def late(self, out, value):
        time.sleep(1e-4)
        out.copy_(value)

    def forward(self, x):
        mean = x.mean(1, keepdim=True)
        centred = x - mean
        out = torch.empty_like(centred)
        self.pool.submit(self.late, out, centred)
        largest = x.max(1)
        return mean, largest.values, largest.indices, out
