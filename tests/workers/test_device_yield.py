"""Whoever builds gives way to whoever times: in the middle of a build, with his processes stopped and his time limits standing still."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from built_worker import build

from warpwright.timing.device_lock import DeviceLock
from warpwright.workers.device_yield import yielding
from warpwright.workers.sandbox import Limits, Worker

BUSY = """
import time
import torch

class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = []
        end = time.process_time() + SECONDS  # of CPU time: it stands still while the process is stopped
        while time.process_time() < end:
            pass

    def forward(self, x):
        return x + 1
"""


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[DeviceLock]:
    yield DeviceLock("cpu", tmp_path / "locks")


class Timer(threading.Thread):
    """Wants the device alone `after` some seconds, and keeps it for some."""

    def __init__(self, lock: DeviceLock, after: float, seconds: float, worker: Worker) -> None:
        super().__init__()
        self.lock, self.after, self.seconds, self.worker = lock, after, seconds, worker
        self.waited = self.used = float("nan")

    def run(self) -> None:
        time.sleep(self.after)
        began = time.monotonic()
        with self.lock.exclusive():
            self.waited = time.monotonic() - began
            before = self.worker.cpu_clock()
            time.sleep(self.seconds)
            self.used = self.worker.cpu_clock() - before


def build_busily(worker: Worker, timeout: float, seconds: float = 2.0) -> None:
    build(worker, BUSY.replace("SECONDS", str(seconds)), timeout)


def built_beside(lock: DeviceLock, after: float, seconds: float, timeout: float, work: float) -> Timer:
    """Build while the device is held beside others; return the timer that wanted it alone meanwhile, for `seconds`."""
    with Worker("candidate", "cpu", Limits(isolation="limits")) as worker:
        worker.request("hello")
        timer = Timer(lock, after, seconds, worker)
        timer.start()
        with lock.shared() as held, yielding(held):
            build_busily(worker, timeout, work)
        timer.join()
    return timer


def test_a_build_steps_aside_for_a_timer(lock: DeviceLock) -> None:
    timer = built_beside(lock, 0.5, 1.5, timeout=60.0, work=5.0)
    assert timer.waited < 3.0, "the timer waited for the whole build"
    assert timer.used < 0.01, "the build went on beside the timer"


def test_the_limit_of_a_build_stands_still_meanwhile(lock: DeviceLock) -> None:
    timer = built_beside(lock, 0.3, 8.0, timeout=8.0, work=2.0)  # 2 s of work, 8 s stopped
    assert timer.used < 0.01


def test_nobody_steps_aside_who_does_not_hold_the_device(lock: DeviceLock) -> None:
    with Worker("candidate", "cpu", Limits(isolation="limits")) as worker:
        worker.request("hello")
        timer = Timer(lock, 0.2, 0.2, worker)
        timer.start()
        build_busily(worker, 30.0)
        timer.join()
    assert timer.used > 0.05
