"""Puts the programs of a pass on the same cores.

A process that sleeps and wakes stays where it was. Of two copies of one program on two cores, one beside a busy neighbour, the other is then
1.5x faster for as long as both live; with both on one core, drawn anew for each pass, the neighbour hits both alike or neither. Threads that wait
for work are moved off that core: otherwise the kernel wakes them there now and then, and the call takes up to four times as long.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator

from warpwright.workers.procfs import threads_of

_refused = False
"""Whether this process may not move another's threads (another user's, without CAP_SYS_NICE): then it moves none, its own user's neither."""


def cores() -> list[int]:
    """Return the cores that this process may use."""
    return sorted(os.sched_getaffinity(0))


def core(place: float) -> int:
    """Return the core that lies at `place`, from 0 up to but not including 1, of those that this process may use."""
    usable = cores()
    return usable[int(place * len(usable))]


def take(pid: int, place: float) -> None:
    """Put a process's main thread, and what it starts from now on, on the core at `place`, and its other threads on the other cores."""
    if _refused:
        return
    usable, chosen = set(cores()), {core(place)}
    for thread in threads_of(pid):
        _move(thread, chosen if thread == pid else usable - chosen or chosen)


def release(pid: int) -> None:
    """Let all threads of a process go where they like; as a rule they stay."""
    usable = cores()
    for thread in threads_of(pid):
        _move(thread, usable)


@contextlib.contextmanager
def started_at(pid: int, place: float) -> Iterator[None]:
    """Inside, a process is where `take` puts it; afterwards its threads may go where they like."""
    take(pid, place)
    try:
        yield
    finally:
        release(pid)


def _move(thread: int, wanted: Iterable[int]) -> None:
    """What has ended stays as it is."""
    global _refused
    try:
        os.sched_setaffinity(thread, wanted)
    except PermissionError:
        _refused = True
    except OSError:
        return
