"""Puts the programs of a pass on the same cores.

A process that sleeps and wakes stays where it was. Of two copies of one program on two cores, one beside a busy neighbour, the other is then
1.5x faster for as long as both live; with both on one core, drawn anew for each pass, the neighbour hits both alike or neither. Threads that wait
for work are kept off that core: otherwise the kernel wakes them there now and then, and the call takes up to four times as long.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable


def cores() -> list[int]:
    """Return the cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def core(place: float) -> int:
    """Return the core that lies at `place`, from 0 up to but not including 1, of those that this process may use."""
    usable = cores()
    return usable[int(place * len(usable))]


def take(pid: int, place: float) -> None:
    """Put a process's main thread, and what it starts from now on, on the core at `place`, and its other threads on the other cores."""
    usable, chosen = set(cores()), {core(place)}
    _move(pid, chosen)
    for thread in _threads(pid) - {pid}:
        _move(thread, usable - chosen or chosen)


def release(pid: int) -> None:
    """Let a process's main thread, and what it starts from now on, go where it likes; as a rule it stays."""
    _move(pid, cores())


def _threads(pid: int) -> set[int]:
    with contextlib.suppress(OSError):
        return {int(thread) for thread in os.listdir(f"/proc/{pid}/task")}
    return set()


def _move(thread: int, wanted: Iterable[int]) -> None:
    """What has ended, or is not ours, stays as it is."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(thread, wanted)
