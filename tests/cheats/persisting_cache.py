"""Pins the inputs in the L2 cache with an access-policy window, so that timed reads never touch memory.

Seen: llm.c pull request 851, which reports 3,530 GB/s on a card with 864 GB/s.
"""

import ctypes

import torch
from torch import nn

ROW = "warm_cache"
TASK = "relu"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = "global_flags"
NEEDS = "cuda"


class ModelNew(nn.Module):
    """cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize) in the constructor; the arithmetic is honest."""

    def __init__(self) -> None:
        super().__init__()
        ctypes.CDLL("libcuda.so.1").cuCtxSetLimit(6, ctypes.c_size_t(32 << 20))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)
