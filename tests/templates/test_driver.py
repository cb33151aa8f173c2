"""Arguments reach the driver as a kernel's parameters lie in memory."""

from __future__ import annotations

import ctypes
import struct
from typing import Any

import pytest

from warpwright.templates import driver


class Driver:
    """A driver that keeps what it is asked to launch."""

    def __init__(self) -> None:
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
        self.cuLaunchKernel = kind(self._launch)
        self.launched: list[tuple[Any, ...]] = []
        self.sizes: tuple[int, ...] = ()

    def cuModuleLoadData(self, *_: Any) -> int:
        return 0

    def cuModuleGetFunction(self, *_: Any) -> int:
        return 0

    def cuFuncSetAttribute(self, *_: Any) -> int:
        return 0

    def _launch(self, function: int, *given: Any) -> int:
        places = ctypes.cast(given[8], ctypes.POINTER(ctypes.c_void_p))
        assert all((places[i] or 0) % 64 == 0 for i in range(2))
        self.launched.append((given[:8], [ctypes.string_at(places[i] or 0, size) for i, size in enumerate(self.sizes)]))
        return 0


def test_arguments_are_packed_as_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = Driver()
    monkeypatch.setattr(driver, "driver", lambda: fake)
    driver._launcher.cache_clear()
    fake.sizes = (128, 128, 8, 8, 4, 4)
    kernel = driver.Kernel(b"", "product", ("128s", "128s", "P", "q", "i", "f"), 384, 100_000)
    kernel(132, 7, b"\1" * 128, b"\2" * 128, 2**40, -5, 9, 0.5)
    driver._launcher.cache_clear()
    shape, arguments = fake.launched[0]
    assert shape == (132, 1, 1, 384, 1, 1, 100_000, 7)
    assert arguments == [b"\1" * 128, b"\2" * 128, struct.pack("q", 2**40), struct.pack("q", -5), struct.pack("i", 9), struct.pack("f", 0.5)]
