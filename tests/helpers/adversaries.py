"""Programs that try to gain by how they are timed, on a machine of this file's own: against what decides which passes count.

A candidate on a GPU is not stopped between its turns. Here it may do its worst then: keep the cores busy, so that any look at a core finds it slow,
and send kernels, so that whoever is called takes so many times as long. It knows its own times, and when it is called. Written, and run, before
anything was mended against them: `PutsWorkOff` gained 1.46, `HidesItsSlowCalls` 1.05.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

from warpwright.base import Measurement
from warpwright.timing import measure
from warpwright.timing.sequential import median
from warpwright.verifier import timed

CALL = 1e-2
"""Seconds of a turn."""

BURNS, CORES = 1e-3, 8
"""Seconds for which the cores are kept busy at a time, and how many: one alone is not that of the pass, and slows it little."""

SLOW, LASTS = 1.4, 0.5
"""How much longer the calls of programs that wait for the host take on a slow core, and for how long it stays so."""


@dataclass
class Machine:
    """A clock, cores that are slow half of the time, and what the candidate does to both."""

    rng: Random
    cores: bool = True
    """Do they change by themselves?"""
    now: float = 0.0
    slow: bool = False
    burns: float = 0.0
    """Seconds of CPU time that the candidate has used between its turns."""
    kernels: float = 1.0
    """So many times as long others take for its kernels."""
    burns_until: float = 0.0
    _until: float = 0.0

    @property
    def burning(self) -> bool:
        """Does the candidate keep the cores busy?"""
        return self.now < self.burns_until

    def go_on(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        if self.burning:
            self.burns += CORES * seconds
        while self.cores and self.now > self._until:
            self._until += self.rng.expovariate(1 / LASTS)
            self.slow = self.rng.random() < 0.5

    def sound(self) -> bool:
        """What a look at the core finds."""
        self.go_on(3e-4)
        return not self.slow and not self.burning

    def worked(self) -> float:
        """Return the CPU seconds that the candidate has used since this was asked."""
        used, self.burns = self.burns, 0.0
        return used

    def counts(self) -> bool:
        """What `timed._still_quick` makes of both."""
        quick, used = self.sound(), self.worked()
        return quick or used > timed.RESTS


class Program:
    """One that waits for the device, or for the host."""

    def __init__(self, machine: Machine, seconds: float = CALL, host: bool = False, spread: float = 0.01) -> None:
        self.name, self.machine, self.seconds, self.host, self.spread = "", machine, seconds, host, spread
        self.calls = 0

    def prepare(self, inputs: Any, place: float) -> None:
        self.machine.go_on(8e-3)

    def go(self) -> float:
        self.calls += 1
        taken = self.takes() * math.exp(self.machine.rng.gauss(0.0, self.spread))
        if self.host and self.machine.slow:
            taken *= SLOW
        self.machine.go_on(taken)
        return taken

    def takes(self) -> float:
        """Seconds of this call on a quick core."""
        return self.seconds * self.machine.kernels

    def check(self) -> None:
        return None


class Candidate(Program):
    """Does nothing between its turns, unless it is another class."""

    def prepare(self, inputs: Any, place: float) -> None:
        self.machine.burns_until, self.machine.kernels = 0.0, 1.0
        super().prepare(inputs, place)

    def go(self) -> float:
        taken = super().go()
        self.afterwards(taken)
        return taken

    def takes(self) -> float:
        return self.seconds

    def afterwards(self, taken: float) -> None:
        """What it does until it is asked again."""

    def burn(self, now: bool, seconds: float = BURNS) -> None:
        """Keep the cores busy, for long enough that a look at them falls into it."""
        self.machine.burns_until = self.machine.now + (seconds if now else 0.0)


class HidesItsSlowCalls(Candidate):
    """Keeps the cores busy after a call that was slower than its usual ones."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, spread=0.1)
        self.taken: list[float] = []

    def afterwards(self, taken: float) -> None:
        self.taken.append(taken)
        self.burn(taken > sorted(self.taken)[len(self.taken) // 2])


class PutsWorkOff(Candidate):
    """Has seven calls of ten take half as long again, and keeps the cores busy after those."""

    def takes(self) -> float:
        self.late = self.machine.rng.random() < 0.7
        return self.seconds * (1.5 if self.late else 1.0)

    def afterwards(self, taken: float) -> None:
        self.burn(self.late)


class EndsPassesBefore(PutsWorkOff):
    """Knows that its next call is a slow one, and keeps the cores busy until then, so that the pass ends before it is called; else the call is made,
    and the cores are kept busy after it."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine)
        self.next = False

    def takes(self) -> float:
        self.late, self.next = self.next, self.machine.rng.random() < 0.7
        return self.seconds * (1.5 if self.late else 1.0)

    def afterwards(self, taken: float) -> None:
        self.burn(self.late or self.next, math.inf if self.next else BURNS)


class OutlastsQuickCores(Candidate):
    """Uses no core at all: more than half of its calls take so long that the core of the pass may have become a slow one by their end."""

    def takes(self) -> float:
        return 1.0 if self.machine.rng.random() < 0.54 else self.seconds / 1.5


class SlowsOthers(Candidate):
    """Sends kernels all the time that it is not called."""

    def afterwards(self, taken: float) -> None:
        self.machine.kernels = 1.3


class SlowsOthersMostly(Candidate):
    """Sends kernels in three of five passes."""

    def afterwards(self, taken: float) -> None:
        self.machine.kernels = 1.3 if self.machine.rng.random() < 0.6 else 1.0


class BusyAfterEveryCall(Candidate):
    """Honest: a pool of threads waits busily for 12 ms after each call, whatever it took."""

    def afterwards(self, taken: float) -> None:
        self.burn(True, 12e-3)


ADVERSARIES: dict[type[Candidate], float] = {
    HidesItsSlowCalls: 1.0, PutsWorkOff: 1 / 1.5, EndsPassesBefore: 1 / 1.5, OutlastsQuickCores: CALL, SlowsOthers: 1.0,
    SlowsOthersMostly: 1.0,
}  # fmt: skip
"""What each is worth beside a baseline of its usual speed: the ratio of the medians of all of its calls while it lets others alone."""

HONEST: dict[type[Candidate], float] = {Candidate: 1.0, BusyAfterEveryCall: 1.0}


def trial(
    kind: type[Candidate], seed: int, sound: Callable[[Machine], bool] = Machine.counts, cores: bool = True, seconds: float = 2.6
) -> Measurement:
    """Time a program beside two baselines."""
    machine = Machine(Random(seed), cores=cores)
    beside = {"one": Program(machine), "other": Program(machine, 1.02 * CALL)}
    return measure.compare(
        kind(machine), beside, lambda: machine.go_on(2e-3), seconds=seconds, floor_seconds=0.0, overhead_seconds=0.0, rng=Random(seed + 1),
        check_share=0.0, sound=lambda: sound(machine), clock=lambda: machine.now,
    )  # fmt: skip


def gain(kind: type[Candidate], worth: float, runs: int = 20, **options: Any) -> float:
    """Return the median over runs of what a program seems to be worth beside what it is worth."""
    return median([trial(kind, seed, **options).speedup / worth for seed in range(runs)])
