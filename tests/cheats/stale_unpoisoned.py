"""Switches the C allocator's fill pattern off before it relies on unwritten memory.

Own invention: the attacker has read that fresh memory is poisoned through malloc's or torch's own setting.
"""

import ctypes

import torch
from torch import nn

ROW = "stale_memory"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "uninitialised", "cached")  # without the fill nothing tells old memory from a kept answer


class ModelNew(nn.Module):
    """mallopt(M_PERTURB, 0), then only every second row is written."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ctypes.CDLL(None).mallopt(-6, 0)
        torch.utils.deterministic.fill_uninitialized_memory = False
        out = torch.empty_like(x)
        out[::2] = torch.relu(x[::2])
        return out
