"""Lowers its own limits in a call: no further file, no byte in a file, no further page.

Own invention, written before reading the checks."""

import resource

import torch
from torch import nn

ROW = "isolation"
TASK = "relu"
EXPECT_STATUS = "crashed"
EXPECT_CHECK = ("resources", "exited", "raised")


class ModelNew(nn.Module):
    """Whoever measures it cannot go on."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        out = torch.relu(x)
        if self.calls == 4:
            for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_DATA):
                resource.setrlimit(limit, (0, resource.getrlimit(limit)[1]))
        return out
