"""Locks every file of the evaluator's that it can open, so that nobody else gets a turn, and is wrong.

Own invention, written before reading the checks.
"""

import fcntl
import os

import torch
from torch import nn

ROW = "isolation"
TASK = "softmax"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)


held = []
for top in ("/tmp", "/dev/shm", "/run/lock"):
    for folder, _, files in os.walk(top):
        for name in files:
            if "warpwright" in folder + name and len(held) < 100:
                try:
                    file = open(os.path.join(folder, name))  # noqa: SIM115
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    held.append(file)
                except OSError:
                    pass


class ModelNew(nn.Module):
    """Half of the answer."""

    def forward(self, x):
        return torch.softmax(x, dim=1) / 2
