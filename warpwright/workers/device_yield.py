"""Stops this process's workers while somebody else times on the device that they build on (`timing.device_lock`)."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Protocol

from warpwright.workers.freezer import Freezer


class Held(Protocol):
    """A device that is held beside others (`device_lock.Shared`)."""

    @property
    def wanted(self) -> bool:
        """Does somebody want to time?"""
        ...

    def step_aside(self) -> None:
        """Let him; return when he is done."""
        ...


class Stoppable(Protocol):
    """A worker."""

    @property
    def role(self) -> str:
        """What it does: a judge, a baseline, a candidate."""
        ...

    @property
    def device(self) -> str:
        """Where it works."""
        ...

    @property
    def pid(self) -> int:
        """Its process."""
        ...

    @property
    def freezer(self) -> Freezer:
        """Its stop switch: who is stopped anyway stays so."""
        ...

    @property
    def alive(self) -> bool:
        """Whether its process still runs."""
        ...

    def signal(self, number: int) -> None:
        """Send a signal to it and all its descendants."""
        ...

    def worked(self) -> float:
        """Return the CPU seconds that it has used since it last answered, or since this was asked."""
        ...


class _Holding(threading.local):
    """What this thread holds: another one that waits for a worker does not step aside with it."""

    def __init__(self) -> None:
        self.devices: list[Held] = []


_holding = _Holding()
class Living:
    """The workers that are stopped, each as long as somebody else holds it.

    Threads add and discard workers while others go through them, so that each goes through the workers of one moment: a WeakSet raises
    "Set changed size during iteration" then, also for list(...), which its Python code makes one by one.
    """

    def __init__(self) -> None:
        self._held: dict[int, weakref.ref[Stoppable]] = {}

    def add(self, worker: Stoppable) -> None:
        """Have it stopped with the others."""
        key = id(worker)
        self._held[key] = weakref.ref(worker, lambda _: self._held.pop(key, None))

    def discard(self, worker: Stoppable) -> None:
        """Leave it running."""
        self._held.pop(id(worker), None)

    def __contains__(self, worker: object) -> bool:
        return id(worker) in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[Stoppable]:
        return iter([worker for held in list(self._held.values()) if (worker := held()) is not None])  # list of a dictionary: one step


living = Living()


def held() -> bool:
    """Does this thread hold a device beside others?"""
    return bool(_holding.devices)


@contextlib.contextmanager
def yielding(device: Held) -> Iterator[None]:
    """Inside, whenever this process waits for a worker and somebody wants to time on the device, stop all workers until he is done.

    Only while a reply is awaited: what the parent watches after a call (threads that end, CPU time) is never cut in two. Time limits stand still
    meanwhile. Kernels that a stopped process has sent to a GPU run on; a judge in float64 sends few at once (`judge/original/products.py`), and a
    timer's first rounds are not counted. (Until a judge could be stopped, a timer on an H200 waited for each that was coming up, 5 to 13 s.)
    """
    _holding.devices.append(device)
    try:
        yield
    finally:
        _holding.devices.remove(device)


def give_way() -> float:
    """Step aside if somebody wants to time; return the seconds that it took."""
    held = _holding.devices
    if not held or not held[-1].wanted:
        return 0.0
    began = time.monotonic()
    workers = [worker for worker in living if worker.alive and not worker.freezer.frozen]
    try:
        for worker in workers:
            worker.signal(signal.SIGSTOP)
        held[-1].step_aside()
    finally:
        for worker in workers:
            worker.signal(signal.SIGCONT)
    return time.monotonic() - began
