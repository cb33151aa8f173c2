"""Puts the programs of a pass on the same cores.

A process that sleeps and wakes stays where it was. Of two copies of one program on two cores, one beside a busy neighbour, the other is then
1.5x faster for as long as both live; with both on one core, drawn anew for each pass, the neighbour hits both alike or neither. Threads that wait
for work are moved off that core: otherwise the kernel wakes them there now and then, and the call takes up to four times as long.

Programs on a GPU are put so, too, where they wait busily: of a call of some microseconds the host takes most. On an H200 with 16 cores one original
in two processes came out at 0.47x to 1.33x without that (two of ten SLOWER), and at 0.93x to 1.17x with it (none of 66 FASTER or SLOWER).
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from warpwright.workers.procfs import threads_of

_refused = False
"""Whether this process may not move another's threads (another user's, without CAP_SYS_NICE): then it moves none, its own user's neither."""


@functools.cache
def _given() -> tuple[int, ...]:
    return tuple(sorted(os.sched_getaffinity(0)))


def cores() -> list[int]:
    """Return the cores that this process was given, wherever its threads have been put since."""
    return list(_given())


def core(place: float) -> int:
    """Return the core that lies at `place`, from 0 up to but not including 1, of those that this process may use."""
    usable = cores()
    return usable[int(place * len(usable))]


KEPT, LEAST_CORES = 4, 12
"""Cores where programs on a GPU are timed, and how many there have to be in all. With six tasks on an H200 of 16 cores, whose compilations go on
while another task is timed, 4 to 10 passes were disturbed for 10 that counted, and looking for a quick core among the 16 took up to half of
a pass's time."""


def kept_free() -> frozenset[int]:
    """Return the cores that workers on a GPU leave to those who are timed, whole physical ones; none where there are few."""
    usable, kept = cores(), set[int]()
    for one in reversed(usable if len(usable) >= LEAST_CORES else ()):
        kept |= (siblings(one) & set(usable)) if len(kept) < KEPT else set()
    return frozenset(kept)


def others() -> list[int]:
    """Return the cores for all else: processes of workers on a GPU begin there, and are put there again when they were timed (`send_back`)."""
    return sorted(set(cores()) - kept_free())


_apart = False
"""Whether this process's own threads leave those cores free when they time nobody."""


def leave_cores_free() -> None:
    """Keep this thread, and those that it starts, off the cores that are kept free, but while it times."""
    global _apart
    _apart = True
    _move(0, others())


def send_back(pid: int) -> None:
    """Put all threads of a process that was timed on the cores for all else."""
    if kept_free() and not _refused:
        for thread in threads_of(pid):
            _move(thread, others())


def _home() -> Iterable[int]:
    """Return where this thread goes when it was put on a core for a while."""
    return others() if _apart else cores()


@functools.cache
def siblings(core: int) -> frozenset[int]:
    """Return the logical cores that share a physical one with `core`, itself included: who waits busily on one slows the other down."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list").read_text()
        ranges = [[int(end) for end in part.split("-")] for part in text.strip().split(",")]
    except (OSError, ValueError):
        return frozenset({core})
    return frozenset({core, *(one for ends in ranges for one in range(ends[0], ends[-1] + 1))})


QUICK = 1.12
"""A core counts as quick where a loop of ours takes no more than this many times what it takes on the quickest one."""

LOOKS = 2
"""What comes between for less than a millisecond is over by the second: a core that is slow is so for longer."""

LOOPS, TURNS = 3, 3000
"""Loops of so many turns each: 0.1 ms a core, of which the middle one counts."""


def seconds_on(chosen: int) -> float:
    """Return the seconds of a loop of ours on a core: more where somebody else has it, or its sibling. This thread is elsewhere afterwards."""
    _move(0, {chosen})
    taken = []
    for _ in range(LOOPS):
        began = time.perf_counter()
        for _ in range(TURNS):
            pass
        taken.append(time.perf_counter() - began)
    return sorted(taken)[LOOPS // 2]


class QuickCores:
    """Finds cores that are quick at the time, whatever the programs are that shall be timed there.

    Each of the 16 cores beside an H200 was slow two thirds of the time, for half a second on end, probably for work beside us on the machine. A
    program that waits for the host took 52 us on a quick core and 62 to 92 on others; one that waits for the GPU was 0.87 or 1.29 times as fast.
    """

    def __init__(self, probe: Callable[[int], float] = lambda core: seconds_on(core), quick: float | None = None, lasting: bool = False) -> None:
        """`probe`: seconds of what tells how quick a core is. `quick`: QUICK, if it is another. `lasting`: beside the quickest that was ever seen."""
        self._probe, self._quick, self._lasting = probe, quick, lasting
        self._best = float("inf")
        """Seconds of the probe on the quickest core."""

    def place(self, drawn: float) -> float:
        """Return the place of the core that lies at `drawn` among those that are quick, or of the quickest: of those kept free, if some are."""
        usable = cores()
        looked = sorted(kept_free()) or usable
        try:
            taken = [self._probe(one) for one in looked]
        finally:
            _move(0, _home())
        self._best = min([*taken, *([self._best] if self._lasting else [])])
        quick = [at for at, seconds in enumerate(taken) if self._counts(seconds)] or [taken.index(min(taken))]
        return (usable.index(looked[quick[int(drawn * len(quick))]]) + 0.5) / len(usable)

    def still(self, place: float) -> bool:
        """Whether the core at `place` is quick now, in one of LOOKS looks."""
        try:
            return any(self._counts(self._probe(core(place))) for _ in range(LOOKS))
        finally:
            _move(0, _home())

    def _counts(self, seconds: float) -> bool:
        return seconds <= (self._quick or QUICK) * self._best


def take(pid: int, place: float) -> None:
    """Put a process's main thread, and what it starts from now on, on the core at `place`, and its other threads on the other cores."""
    if _refused:
        return
    usable, chosen = set(cores()), {core(place)}
    for thread in threads_of(pid):
        _move(thread, chosen if thread == pid else usable - chosen or chosen)


TEAMS = 2
"""Thread pools that a process may have for its other threads to stay off the core of the main one: torch's, and one of the program's own."""


def release(pid: int) -> None:
    """Let the main thread of a process go where it likes, and its others if they are more than the other cores hold.

    The others, left where `take` put them, begin a call on another core than the main thread. Where both woke on one core, one waited 4 ms for
    the other, which waited busily for it: calls of 0.8 ms took 1 to 8 ms, and with this 0.9 to 1.5 (two cores, half of the time busy).
    """
    usable, threads = cores(), threads_of(pid)
    _move(pid, usable)
    if len(threads) - 1 > TEAMS * (len(usable) - 1):
        for thread in threads:
            _move(thread, usable)


def keep_off(pid: int, place: float) -> None:
    """Put the threads of a process that has not the turn on other cores than the one at `place`, all of it; those that sleep are not disturbed."""
    if _refused:
        return
    usable, chosen = set(cores()), core(place)
    for thread in threads_of(pid):
        _move(thread, usable - siblings(chosen) or usable - {chosen} or usable)


@contextlib.contextmanager
def started_at(pid: int, place: float) -> Iterator[None]:
    """Inside, a process is where `take` puts it; afterwards `release` holds."""
    take(pid, place)
    try:
        yield
    finally:
        release(pid)


@contextlib.contextmanager
def aside(place: float, quiet: bool = False) -> Iterator[None]:
    """Inside, this thread stays off the core at `place`, all of it: a process that it wakes, and that was there, then stays there alone.

    `quiet`: it is on another one of those that are kept free, if there are, where nothing keeps it from its clock.
    """
    usable, chosen = set(cores()), core(place)
    off = usable - siblings(chosen) or usable - {chosen} or usable
    _move(0, (kept_free() & off if quiet else set()) or off)
    try:
        yield
    finally:
        _move(0, _home())


def _move(thread: int, wanted: Iterable[int]) -> None:
    """What has ended stays as it is."""
    global _refused
    try:
        os.sched_setaffinity(thread, wanted)
    except PermissionError:
        _refused = True
    except OSError:
        return
