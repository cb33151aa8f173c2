"""The name of a GPU from its driver: as many answers as a driver can give."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import pytest

from warpwright.timing import facts, nvml


class Driver:
    """A libnvidia-ml with GPUs of these names."""

    def __init__(self, *names: str, split: bool = False, broken: bool = False) -> None:
        self.names, self.split, self.broken = names, split, broken

    def nvmlInit_v2(self) -> int:
        return int(self.broken)

    def nvmlShutdown(self) -> int:
        return 0

    def nvmlDeviceGetCount_v2(self, count: object) -> int:
        count._obj.value = len(self.names)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index: ctypes.c_uint, handle: object) -> int:
        handle._obj.value = index.value + 1
        return 0

    def nvmlDeviceGetName(self, handle: ctypes.c_void_p, text: ctypes.Array, size: ctypes.c_uint) -> int:
        text.value = self.names[(handle.value or 1) - 1].encode()
        return 0

    def nvmlDeviceGetMigMode(self, handle: ctypes.c_void_p, now: object, pending: object) -> int:
        now._obj.value = int(self.split)
        return 0


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    nvml.name.cache_clear()
    yield
    nvml.name.cache_clear()


@pytest.mark.parametrize(
    ("driver", "shown", "device", "expected"),
    [
        (Driver("NVIDIA H200"), None, "cuda:0", "NVIDIA H200"),
        (Driver("NVIDIA H200"), None, "cuda", "NVIDIA H200"),
        (Driver("NVIDIA H200", "NVIDIA H200"), "1", "cuda:0", "NVIDIA H200"),
        (Driver("NVIDIA H200"), None, "cuda:1", ""),
        (Driver("NVIDIA H200"), "", "cuda:0", ""),
        (Driver("NVIDIA H200"), "-1", "cuda:0", ""),
        (Driver("NVIDIA H200"), "0", "cuda:1", ""),
        (Driver("NVIDIA H200", "NVIDIA T4"), None, "cuda:0", ""),
        (Driver("NVIDIA H200", split=True), None, "cuda:0", ""),
        (Driver("NVIDIA H200", broken=True), None, "cuda:0", ""),
        (Driver(), None, "cuda:0", ""),
    ],
)
def test_the_driver_names_a_gpu_where_there_is_no_doubt(
    monkeypatch: pytest.MonkeyPatch, driver: Driver, shown: str | None, device: str, expected: str
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if shown is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert nvml.name(device) == expected


def test_without_a_driver_cuda_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda name: (_ for _ in ()).throw(OSError("no such library")))
    monkeypatch.setattr(facts, "device_facts", lambda device: {"name": f"asked for {device}"})
    assert facts.name("cuda:0") == "asked for cuda:0"
