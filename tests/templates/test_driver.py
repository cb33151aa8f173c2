"""Arguments reach the driver as a kernel's parameters lie in memory."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright.domains.rgnn.sorting import counting
from warpwright.templates import driver


class Driver:
    """A driver that keeps what it is asked to launch."""

    def __init__(self) -> None:
        kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3)
        self.cuLaunchKernel = kind(self._launch)
        self.cuLaunchCooperativeKernel = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 2)(self._launch)
        self.launched: list[tuple[Any, ...]] = []
        self.context: int | None = 4711
        """The thread's."""
        self.sizes: tuple[int, ...] = ()

    def cuModuleLoadData(self, *_: Any) -> int:
        return 0

    def cuModuleGetFunction(self, *_: Any) -> int:
        return 0

    def cuFuncSetAttribute(self, *_: Any) -> int:
        return 0

    def cuCtxGetCurrent(self, found: Any) -> int:
        found._obj.value = self.context
        return 0

    def cuCtxSetCurrent(self, context: ctypes.c_void_p) -> int:
        self.context = context.value
        return 0

    def cuDeviceGet(self, device: Any, place: int) -> int:
        device._obj.value = place + 40
        return 0

    def cuDevicePrimaryCtxRetain(self, found: Any, device: ctypes.c_int) -> int:
        found._obj.value = device.value + 1000
        return 0

    def _launch(self, function: int, *given: Any) -> int:
        if self.context is None:
            return driver.NO_CONTEXT
        places = ctypes.cast(given[8], ctypes.POINTER(ctypes.c_void_p))
        assert all((places[i] or 0) % 64 == 0 for i in range(2 if len(self.sizes) > 2 else 1))
        self.launched.append((given[:8], [ctypes.string_at(places[i] or 0, size) for i, size in enumerate(self.sizes)]))
        return 0


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    fake = Driver()
    monkeypatch.setattr(driver, "driver", lambda: fake)
    monkeypatch.setattr(counting, "driver", lambda: fake)
    for known in (driver._launcher, counting._together):
        known.cache_clear()
    yield fake
    for known in (driver._launcher, counting._together):
        known.cache_clear()


@pytest.mark.parametrize("kind", ["usual", "cooperative", "counting"])
def test_a_thread_without_a_context_gets_that_of_the_kernel(fake: Driver, kind: str) -> None:
    """Autograd's thread has none where nothing of torch's has run in it: the first launch of a backward may be ours."""
    usual = driver.Kernel if kind != "counting" else counting.Cooperative
    kernel = usual(b"", "product", ("P", "q"), 64, cooperative=kind == "cooperative")
    fake.context, fake.sizes = None, (8, 8)
    kernel(1, 7, 64, 3)
    assert fake.context == 4711 and len(fake.launched) == 1
    fake.context = 815  # a thread that has one keeps it
    kernel(1, 7, 64, 3)
    assert fake.context == 815 and len(fake.launched) == 2


def test_a_kernel_is_loaded_by_a_thread_without_a_context(fake: Driver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 2)
    fake.context = None
    kernel = driver.Kernel(b"", "product", ("P",), 64)
    assert fake.context == kernel.context.value == 1042


def test_arguments_are_packed_as_parameters(fake: Driver) -> None:
    fake.sizes = (128, 128, 8, 8, 4, 4)
    kernel = driver.Kernel(b"", "product", ("128s", "128s", "P", "q", "i", "f"), 384, 100_000)
    kernel(132, 7, b"\1" * 128, b"\2" * 128, 2**40, -5, 9, 0.5)
    shape, arguments = fake.launched[0]
    assert shape == (132, 1, 1, 384, 1, 1, 100_000, 7)
    assert arguments == [b"\1" * 128, b"\2" * 128, struct.pack("q", 2**40), struct.pack("q", -5), struct.pack("i", 9), struct.pack("f", 0.5)]


def test_kernels_are_launched_on_their_operands_device(monkeypatch: pytest.MonkeyPatch) -> None:
    entered = list[Any]()

    @contextmanager
    def device(one: Any) -> Iterator[None]:
        entered.append(one)
        yield

    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "device", device)
    called = driver.on_its_device(lambda x, y, z=0: (x.get_device(), y, z, list(entered)))
    places = ((True, 0), (False, -1), (True, 1))
    at = [SimpleNamespace(is_cuda=cuda, get_device=lambda index=index: index, device=f"cuda:{index}") for cuda, index in places]
    assert [called(x, 2, z=3) for x in at] == [(0, 2, 3, []), (-1, 2, 3, []), (1, 2, 3, ["cuda:1"])]
