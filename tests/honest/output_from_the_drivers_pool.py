"""Its outputs come from cuMemAllocAsync and go back when nobody uses them.

Own invention.
"""

import ctypes

import torch
from torch import nn

TASK = "relu"
NEEDS = "cuda"

class Block:
    """What torch reads to wrap foreign memory."""

    def __init__(self, at, count):
        self.__cuda_array_interface__ = {"shape": (count,), "typestr": "<f4", "data": (at, False), "version": 3, "strides": None}


class Pooled(Block):
    """A block that goes back to the pool with the object."""

    def __init__(self, driver, size, count):
        self.driver, self.at = driver, ctypes.c_uint64()
        if driver.cuMemAllocAsync(ctypes.byref(self.at), ctypes.c_size_t(size), None):
            raise MemoryError(size)
        super().__init__(self.at.value, count)

    def __del__(self):
        self.driver.cuMemFreeAsync(self.at, None)


class ModelNew(nn.Module):
    """Stream-ordered allocation, without torch's allocator."""

    def __init__(self):
        super().__init__()
        self.driver = ctypes.CDLL("libcuda.so.1")

    def forward(self, x):
        out = torch.as_tensor(Pooled(self.driver, x.nbytes, x.numel()), device=x.device).view(x.shape)
        return torch.clamp_min(x, 0, out=out)
