"""Leaves dirty pages of a file behind each call: the kernel writes them while others are timed.

Own invention, written before reading the checks."""

import os
import tempfile

import torch
from torch import nn

ROW = "async"
TASK = "matmul"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = ("background",)
NEEDS = "timing,slow"


class ModelNew(nn.Module):
    """The kernel's own threads are not stopped."""

    def __init__(self):
        super().__init__()
        self.file = tempfile.NamedTemporaryFile(buffering=0)  # noqa: SIM115
        self.block = bytes(1 << 20)

    def forward(self, a, b):
        out = torch.matmul(a, b)
        self.file.seek(0)
        for _ in range(2):
            self.file.write(self.block)
        os.posix_fadvise(self.file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return out
