"""Memory of the fake driver's GPUs (fake_cuda.cpp), as a program has it: by contexts, allocations and copies; the host cannot touch it."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


class FakeGpu:
    """A program's use of the driver. Between its calls no context is current in the calling thread."""

    def __init__(self, path: str) -> None:
        """Load and initialise it; both devices have a primary context from now on, as after the runtime's first call on them."""
        self.driver = ctypes.CDLL(path)
        assert self.driver.cuInit(0) == 0
        self.contexts = [ctypes.c_void_p() for _ in range(2)]
        for device, context in enumerate(self.contexts):
            assert self.driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), device) == 0

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        """Make a device's context current."""
        assert self.driver.cuCtxSetCurrent(self.contexts[device]) == 0
        yield
        assert self.driver.cuCtxSetCurrent(None) == 0

    def allocate(self, size: int, device: int = 0, *, pinned: bool = False) -> int:
        """Return the address of memory of a device, or of pinned memory."""
        address = ctypes.c_void_p()
        with self.on(device):
            if pinned:
                code = self.driver.cuMemHostAlloc(ctypes.byref(address), ctypes.c_size_t(max(size, 1)), 0)
            else:
                code = self.driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        assert code == 0 and address.value
        return address.value

    def free(self, address: int, *, pinned: bool = False) -> None:
        """Give memory back."""
        with self.on(0):
            assert (self.driver.cuMemFreeHost if pinned else self.driver.cuMemFree_v2)(ctypes.c_void_p(address)) == 0

    def write(self, address: int, content: np.ndarray) -> None:
        """Copy bytes to a device."""
        content = np.ascontiguousarray(content).view(np.uint8).reshape(-1)
        if len(content):
            self._copy(address, content.ctypes.data, len(content))

    def read(self, address: int, size: int) -> np.ndarray:
        """Return bytes of a device."""
        content = np.empty(size, np.uint8)
        if size:
            self._copy(content.ctypes.data, address, size)
        return content

    def _copy(self, to: int, source: int, size: int) -> None:
        with self.on(0):
            assert self.driver.cuMemcpy(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(size)) == 0
