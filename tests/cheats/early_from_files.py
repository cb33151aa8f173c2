"""Reads the next inputs from the files of the judge while other programs have their turn; a call that was foreseen is not computed.

Own invention, written against the checks as they stood.
"""

import os

import torch
from torch import nn

ROW = "reference_access"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values",)

FOUND = []
BASES = [f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if name.startswith("warpwright")]


class ModelNew(nn.Module):
    """Stands for a thread that would compute from the file: without the file it has no answer."""

    def forward(self, x):
        for base in BASES:
            for number in range(60):
                folder = f"{base}/judge-{number}"
                names = os.listdir(folder) if os.access(folder, os.R_OK | os.X_OK) else []
                FOUND.extend(name for name in names if os.path.getsize(f"{folder}/{name}") == x.nbytes)
        return torch.relu(x) if FOUND else torch.zeros_like(x)
