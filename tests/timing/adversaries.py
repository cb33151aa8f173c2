"""Programs that try to gain by how they are timed, on a machine of this file's own: against what decides which passes count, and which baselines.

A candidate on a GPU is not stopped between its turns. Here it may do its worst then: keep the cores busy (`burns`), so that any look at a core finds
it slow, and send kernels (`kernels`), so that whoever is called takes so many times as long. It knows its own times, and when it is called.

Each has a `gain`, which it would have if the timer believed what it sees: the speed-up over what the same program has while it lets others alone.
Written before anything was mended against them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from warpwright.base import Measurement
from warpwright.timing import measure

CALL = 1e-2
"""Seconds of a turn."""

BURNS = 1e-3
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
            self.burns += seconds
        while self.cores and self.now > self._until:
            self._until += self.rng.expovariate(1 / LASTS)
            self.slow = self.rng.random() < 0.5

    def sound(self) -> bool:
        """What a look at the core finds."""
        self.go_on(3e-4)
        return not self.slow and not self.burning

    def idle(self) -> bool:
        """Whether the candidate was quiet since it was asked for something."""
        return not self.burning


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


class SlowsOthers(Candidate):
    """Sends kernels all the time that it is not called."""

    def afterwards(self, taken: float) -> None:
        self.machine.kernels = 1.3


class SlowsOthersMostly(Candidate):
    """Sends kernels in three of five passes."""

    def afterwards(self, taken: float) -> None:
        self.machine.kernels = 1.3 if self.machine.rng.random() < 0.6 else 1.0


class SlowsTheFirstPasses(Candidate):
    """Makes one baseline appear far slower than another while the hopeless are dropped: it guesses whose turn it is, and guesses right."""

    passes = 12

    def afterwards(self, taken: float) -> None:
        if self.calls <= self.passes:
            self.machine.kernels = 3.0


class Victim(Program):
    """The quicker baseline, the only one that kernels are sent against."""


class Bystander(Program):
    """The other one."""

    def takes(self) -> float:
        return self.seconds


class FastAtFirst(Candidate):
    """Is half as fast again until the second processes are given up."""

    def takes(self) -> float:
        return self.seconds / (1.5 if self.calls < 18 else 1.0)


class BusyAfterEveryCall(Candidate):
    """Honest: a pool of threads waits busily for 12 ms after each call, whatever it took."""

    def afterwards(self, taken: float) -> None:
        self.burn(True, 12e-3)


class ForTheHost(Candidate):
    """Honest: a program that waits for the host."""

    def __init__(self, machine: Machine) -> None:
        super().__init__(machine, host=True)


ADVERSARIES: dict[type[Candidate], float] = {
    HidesItsSlowCalls: 1.0, PutsWorkOff: 1 / 1.5, EndsPassesBefore: 1 / 1.5, SlowsOthers: 1.0, SlowsOthersMostly: 1.0, FastAtFirst: 1.0,
}  # fmt: skip
"""What each is worth beside a baseline of its usual speed: the ratio of the medians of all of its calls while it lets others alone."""

HONEST: dict[type[Candidate], float] = {Candidate: 1.0, BusyAfterEveryCall: 1.0}


@dataclass
class Trial:
    """One comparison."""

    kind: type[Candidate]
    seed: int
    seconds: float = 2.6
    options: dict[str, Any] = field(default_factory=dict)
    cores: bool = True

    def run(self, sound: Callable[[Machine], Callable[[], bool]] = lambda machine: machine.sound) -> Measurement:
        machine = Machine(Random(self.seed), cores=self.cores)
        beside = {"one": Program(machine), "other": Program(machine, 1.02 * CALL)}
        return measure.compare(
            self.kind(machine), beside, lambda: machine.go_on(2e-3), seconds=self.seconds, floor_seconds=0.0, overhead_seconds=0.0,
            rng=Random(self.seed + 1), check_share=0.0, sound=sound(machine), clock=lambda: machine.now, **self.options,
        )  # fmt: skip


def gains(kind: type[Candidate], worth: float, runs: int = 20, **options: Any) -> tuple[float, int]:
    """Return the median of what a program gained, and how often its speed-up's interval was above what it is worth."""
    found = [Trial(kind, seed, **options).run() for seed in range(runs)]
    return sorted(one.speedup / worth for one in found)[runs // 2], sum(one.interval[0] > worth for one in found)


if __name__ == "__main__":
    for kind, worth in {**ADVERSARIES, **HONEST}.items():
        print(f"{kind.__name__:22} gain {gains(kind, worth)[0]:.3f}, interval above its worth in {gains(kind, worth)[1]} of 20")
