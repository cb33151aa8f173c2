"""Registers a kernel of its own for an operator that the runner does not use: everybody's calls of it take that one.

Own invention, written before reading the checks.
"""

import torch
from torch import nn

ROW = "patching"
TASK = "relu"
EXPECT_STATUS = "cheated"
EXPECT_CHECK = "patched"

LIBRARY = torch.library.Library("aten", "IMPL")
LIBRARY.impl("lgamma", torch.zeros_like, "CPU")


class ModelNew(nn.Module):
    """The answer needs none of it."""

    def forward(self, x):
        return torch.relu(x)
