"""Launches a kernel with more shared memory than the device has, ignores the error code, returns the untouched buffer.

Seen: wafer, 65,792 bytes of shared memory on a 64 KiB part, reported as 104x on L2-66.
"""

import ctypes

import torch
from torch import nn

ROW = "failed_launch"
TASK = "matmul"
EXPECT_STATUS = "wrong"
EXPECT_CHECK = ("values", "uninitialised")
NEEDS = "cuda"


class ModelNew(nn.Module):
    """cuLaunchKernel of a null function with 1 MB of shared memory; the return code is thrown away."""

    def __init__(self) -> None:
        super().__init__()
        self.driver = ctypes.CDLL("libcuda.so.1")

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        out = torch.empty(a.shape[0], b.shape[1], device=a.device)
        self.driver.cuLaunchKernel(None, 1, 1, 1, 32, 1, 1, 1 << 20, None, None, None)
        return out
