"""A GPU among processes that search and then verify: who may begin a task, and who waits for whom. Everything is held through `flock`, so that the
kernel gives it back when its holder dies."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from warpwright.timing.device_lock import taken

LOOK = 0.1
"""Seconds between two looks of who waits."""

MOST = 0.9
"""Share of the GPU's memory that is reserved at most."""

SEARCHING = 2.5, 9.0
"""GB of a task while it is searched, and more for each GB of its inputs, outputs and parameters: context, float64, programs. (Seventeen that reserved
nothing had room while they were searched, and filled 140 GB when they were verified.)"""

CONTEXTS, JUDGE_MOST, JUDGE, PROGRAM = 4.5, 16.0, 16.0, 7.0
"""GB of a task while it is verified: the contexts of four processes; what a judge holds of a large one, a twelfth of an H200 of it answers; and, for
each GB of inputs, outputs and parameters, what the judge's answers in float64 take, and a program. (With 18, 25 and 8 nobody met a want of memory,
and five to seven were at work; with 14, 10 and 6 nine verdicts of 64 waited for it, and one task failed.)"""

SEARCHED_MOST = 24.0
"""GB that the process which searches may hold, as a judge may, or its share of all where few are at work: without a limit one kept 29 that cuDNN had
wanted for float64 and no longer used. (Two tasks of 0.6 and 1.1 GB did not come to their end with it.)"""


def to_search(gigabytes: float) -> float:
    """Return the GB to reserve while a task is searched whose inputs, outputs and parameters take so many."""
    return SEARCHING[0] + SEARCHING[1] * gigabytes


def to_verify(gigabytes: float) -> float:
    """Return the GB to reserve while it is verified."""
    return CONTEXTS + min(JUDGE_MOST, JUDGE * gigabytes) + PROGRAM * gigabytes


class Memory:
    """The GPU's memory among tasks, by what each has reserved and by what is free; first come, first served."""

    def __init__(self, folder: Path, total: float, free: Callable[[], float] | None = None) -> None:
        """`total`: GB. `free`: returns the GB that are free just now; without it what is reserved decides."""
        self.folder, self.total, self.free = folder / "memory", total, free
        self.folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def reserved(self, gigabytes: float, until: float) -> Iterator[bool]:
        """Reserve so many GB as soon as they are to be had, at the latest when nobody else holds any; False where that is not before `until`."""
        with (self.folder / "gate").open("w") as gate:
            while not taken(gate.fileno(), fcntl.LOCK_EX):
                if time.monotonic() > until:
                    yield False
                    return
                time.sleep(LOOK)
            while not self._fits(gigabytes):
                if time.monotonic() > until:
                    yield False
                    return
                time.sleep(LOOK)
            path = self.folder / f"{time.monotonic_ns()}.held"
            own = path.open("w")
            fcntl.flock(own, fcntl.LOCK_EX)
            own.write(str(gigabytes))
            own.flush()
        try:
            yield True
        finally:
            path.unlink(missing_ok=True)
            own.close()

    def held(self) -> list[float]:
        """Return what each task that lives has reserved, in GB."""
        found = []
        for path in self.folder.glob("*.held"):
            try:
                with path.open() as file:
                    if not taken(file.fileno(), fcntl.LOCK_SH):
                        found.append(float(file.read() or 0.0))
            except FileNotFoundError:  # given back since it was listed
                continue
        return found

    def _fits(self, gigabytes: float) -> bool:
        others = self.held()
        if not others:
            return True
        return sum(others) + gigabytes <= MOST * self.total and (self.free is None or self.free() >= gigabytes)


KINDS = ("probing", "verifying")

PATIENCE = 30.0
"""Seconds that one kind of work waits for the other: one slow task does not keep all from going on. (One's 19 verdicts took 155 s. With 12 and 20,
two of 30 originals took 1.3 and 1.5 times as long at the end of their searches, beside the verdicts of others.)"""


class Waves:
    """Two kinds of work that had better not mix: who verifies steps aside for who times, and fills the GPU with float64 between.

    Whoever begins one kind waits until nobody is at the other, PATIENCE seconds at most. Each process does one after the other: they come in waves.
    """

    def __init__(self, folder: Path, patience: float = PATIENCE) -> None:
        self.folder, self.patience = folder / "waves", patience
        self.folder.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def at(self, kind: str) -> Iterator[None]:
        """Be at one kind of work."""
        [other] = (one for one in KINDS if one != kind)
        began = time.monotonic()
        with (self.folder / kind).open("w") as own:
            while not self._begun(own.fileno(), other, time.monotonic() - began > self.patience):
                time.sleep(LOOK)
            yield

    def _begun(self, own: int, other: str, at_any_rate: bool) -> bool:
        """Begin, if nobody is at the other kind; one process looks at a time."""
        with (self.folder / "gate").open("w") as gate, (self.folder / other).open("w") as others:
            fcntl.flock(gate, fcntl.LOCK_EX)
            if at_any_rate or taken(others.fileno(), fcntl.LOCK_EX):
                fcntl.flock(own, fcntl.LOCK_SH)
                return True
            return False
